"""Detects words that are not standard terms, and idioms that technical writers avoid: `make lint`.

Readers search for standard terms. Each row below has a pattern and its replacement.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TERMS = {
    r"absorbs": "propagates",
    r"call_for": "prefetch",
    r"[Tt]urned(?! (out|up|off|on|into))|k?Turned": "transposed, flipped",
    r"Loose": "Unaligned",
    r"items_before_line": "alignment peel",
    r"is_settled": "saturated",
    r"lay_\w+": "write",
    r"kUnclear": "kNotHandled",
    r"winners|Located": "indices",
    r"names_are_right|is_right": "is_valid",
    r"is_lost": "backoff",
    r"elements_are_apart": "has_no_internal_overlap",
    r"stand_in": "fake, abstract",
    r"formulations?": "lowering",
    r"(?<!you )(?<!You )(\w*_)?want(s|ed)?(_\w+)?": "expected, requires",
    r"sought": "expected",
    r"crew": "worker pool",
    r"doors?": "integration",
    r"negative_is_bad|past_is_bad": "rejects",
    r"goes_on_after": "continues_after",
    r"_SURELY": "a name that says what is sure",
    r"nobody else is at": "uncontended",
    r"had better": "should",
    r"in silence": "silently",
    r"without a step down": "non-decreasing",
}
# Idioms in texts for users and contributors: docs, docstrings, comments and messages.
IDIOMS = {
    r"[Ww]hoever": "the role, such as users",
    r"[Ss]omebody|[Nn]obody": "the subject, or the passive",
    r"(?<=\"\"\")(What|Those|That|Of)": "a noun, such as The ...",
    r"in the place of": "instead of, replaced by",
    r"stands? (for|in|beside)": "means, is in, is beside",
    r"need not": "does not need",
    r"unless told": "without the option",
    r"at hand": "available",
    r"memory does not suffice|[Ww]here memory ends": "out of memory",
    r"none of which|of which (there is|nothing|nobody|no)": "a sentence of its own",
    r"once more": "again",
    r"(has|knows) not(?! (been|become|changed|yet)|\")": "lacks, does not have",
}
PATTERNS = {re.compile(rf"\b(?:{word})\b"): term for word, term in TERMS.items()}
PROSE = PATTERNS | {re.compile(rf"(?:{word})\b"): term for word, term in IDIOMS.items()}
IS_PROSE = re.compile(r"(src|docs|native|README|CONTRIBUTING|examples)")
LOOKED_AT = ("*.py", "*.pyi", "*.cpp", "*.h", "*.def", "*.md", "*.toml", "Makefile")


def main() -> int:
    """Print each match. Return 1 if there are any."""
    listed = subprocess.run(
        ["git", "ls-files", *LOOKED_AT], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    found = 0
    for name in listed.split():
        if name.startswith(("third_party/", "docs/findings/")) or name in (".ci/words.py", "CHANGELOG.md"):
            continue
        patterns = PROSE if IS_PROSE.match(name) else PATTERNS
        for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
            for pattern, term in patterns.items():
                if match := pattern.search(line):
                    print(f"{name}:{number}: {match[0]!r}; write: {term}")
                    found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main())
