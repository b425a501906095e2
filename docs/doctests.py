"""For mkdocstrings: the examples of docstrings as blocks of code, which Markdown would take for quotations."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

# From a prompt to the next empty line, as doctest has it.
EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class Doctests(Extension):
    """Fences examples."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for each module, class, function and attribute that was read."""
        del kwargs
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)
