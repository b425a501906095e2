"""Format values in messages."""

from __future__ import annotations

_MOST = 200  # characters


def shown(value: object) -> str:
    """Return the repr of a value, truncated if long. If repr fails, return the type and, for an integer, its width.

    >>> shown("a"), shown(10**5000), shown([10**5000])
    ("'a'", '<int of 16610 bits>', '<list without repr>')
    >>> len(shown(list(range(1000))))
    200
    """
    kind = type(value).__name__
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - a user's __repr__ may fail, and Python's repr of long integers does
        return f"<{kind} of {value.bit_length()} bits>" if isinstance(value, int) else f"<{kind} without repr>"
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def printable(text: str) -> str:
    r"""Return the text with escapes for nonprintable characters, which could move a terminal's cursor or set colors.

    >>> printable("scores\x1b[2J")
    'scores\\x1b[2J'
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)
