"""For mkdocstrings: the examples of docstrings as blocks of code, which Markdown would take for quotations.

And no default of `*arrays`, which griffe gives an empty tuple: a call without arrays is an error.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Function, Object, ParameterKind

# From a prompt to the next empty line, as doctest has it.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Fences examples."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute that was read."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Called for each function and method that was read."""
        del kwargs
        for parameter in func.parameters:
            if parameter.kind is ParameterKind.var_positional:
                parameter.default = None
