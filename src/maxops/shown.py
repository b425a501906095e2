"""Values in messages."""

from __future__ import annotations

_MOST = 200  # characters


def shown(value: object) -> str:
    """The repr of a value, cut where it is long, or its size where Python writes none: integers past 4,300 digits.

    >>> shown("a"), shown(10**5000), shown([10**5000])
    ("'a'", '<int of 16610 bits>', '<list that Python does not write>')
    >>> len(shown(list(range(1000))))
    200
    """
    kind = type(value).__name__
    try:
        text = repr(value)
    except ValueError:
        return (
            f"<{kind} of {value.bit_length()} bits>"
            if isinstance(value, int)
            else f"<{kind} that Python does not write>"
        )
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."
