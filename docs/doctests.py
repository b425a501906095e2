"""A Griffe extension that turns doctests into code blocks, because Markdown would render them as block quotes.

The extension adds imports for the names that a doctest uses from its module, so that each block runs on its own. It
also removes the default `()` that Griffe adds to parameters such as `*arrays`, because a call without arrays is an
error.
"""

from __future__ import annotations

import ast
import doctest
import re
from typing import Any

from griffe import Extension, Function, Object, ParameterKind

# From a prompt to the next empty line, as in doctest.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Puts doctests into fenced code blocks, and removes the defaults of variadic parameters."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Put the doctests of a module, class, function or attribute into fenced code blocks."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(
                lambda block: "\n".join(["```pycon", *_imports(block[0], obj), block[0], "```"]), obj.docstring.value
            )

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Remove the default of a variadic parameter of a function or method."""
        del kwargs
        for parameter in func.parameters:
            if parameter.kind is ParameterKind.var_positional:
                parameter.default = None


def _imports(block: str, obj: Object) -> list[str]:
    """Return import statements for the names that a doctest uses from the module of the documented object."""
    nodes = [node for each in doctest.DocTestParser().get_examples(block) for node in ast.walk(ast.parse(each.source))]
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    used = dict.fromkeys(node.id for node in nodes if isinstance(node, ast.Name) and node.id not in bound)
    module = obj if obj.is_module else obj.module
    imports = [_import(name, module) for name in used if name in module.members]
    return [f">>> {each}" for each in sorted(imports, key=lambda each: "maxops" in each)]


def _import(name: str, module: Object) -> str:
    """Return an import statement for a member of a module, from the package that exports it or as in the module."""
    member = module.members[name]
    path = member.target_path if member.is_alias else member.path
    for package in (module.package, module.parent):
        # a function may have the name of its module
        if package and name in (package.exports or []) and package[name].canonical_path in (path, module.path):
            return f"from {package.path} import {name}"
    place, _, last = path.rpartition(".")
    if last != name:
        return f"import {path} as {name}"
    return f"from {place} import {name}" if place else f"import {name}"
