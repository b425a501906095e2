"""Griffe extension that turns doctests into code blocks, because Markdown would render them as quotations.

It also removes griffe's default `()` of `*arrays`, because a call without arrays is an error.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Function, Object, ParameterKind

# From a prompt to the next empty line, as in doctest.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Fences doctests, and removes the defaults of variadic parameters."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Fence the doctests of a module, class, function or attribute."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Remove the default of a variadic parameter of a function or method."""
        del kwargs
        for parameter in func.parameters:
            if parameter.kind is ParameterKind.var_positional:
                parameter.default = None
