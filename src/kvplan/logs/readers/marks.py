"""The plain text that every line of a regular expression must have, so that it is tried seldom."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"\\(?P<special>[a-zA-Z])|\\(?P<escaped>.)|\[\^?\]?[^\]]*\]|(?P<open>\()|(?P<close>\))"
    r"|(?P<quantifier>[?*+]\??|\{\d+(?:,\d*)?\}\??)|[.^$|]|(?P<plain>.)",
    re.DOTALL,
)


def longest_text(pattern: str) -> str:
    """The longest run of plain text outside groups: of ``took <n:size>(?: in)? all``, ``took ``."""
    runs, depth = [""], 0
    for token in _TOKEN.finditer(pattern):
        kind = token.lastgroup
        if kind == "open":
            depth += 1
        elif kind == "close":
            depth -= 1
        elif depth == 0 and kind in ("plain", "escaped"):
            runs[-1] += token[kind]
            continue
        elif depth == 0 and kind == "quantifier":
            runs[-1] = runs[-1][:-1]  # what it repeats may be absent
        runs.append("")
    return max(runs, key=len)
