"""What machines put around a message: time stamps, levels, workers, containers, colours, quotes.

vllm-1  | (Worker_TP3_EP3 pid=812) INFO 11-30 12:00:00 [gpu_worker.py:298] Available KV …
           rank TP3 EP3                                where                text
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_MESSAGE = 1 << 17
HEAD = 400  # in which prefixes are looked for
MOST_PREFIXES = 16

# Colours as they are printed, as syslog (#033) and JSON strings write them, and without their
# escape, as forums leave them.
_COLOURS = re.compile(r"(?:\x1b|#033|\\u001b|\\x1b|\\033|ESC)?\[[0-9;?]{1,12}[mKHJ]|\x1b\[[KmHJ]")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_BREAKS = re.compile(r"\r+")
# A JSON string's own line ends, and its other escapes.
_JSON_BREAKS = re.compile(r"(?:\\\\?[nr])+")
_JSON_ESCAPE = re.compile(r"\\+([\"'/t])")

# Where a message begins on a line that holds several, as vLLM's workers write over each other.
_BEGINNING = re.compile(
    r"(?:\([^()]{1,60}\bpid=\d{1,9}[^()]{0,60}\)\s{0,2}){0,3}"
    r"(?:INFO|WARNING|ERROR|DEBUG) \d\d-\d\d \d\d:\d\d:\d\d "
)
_WHERE = re.compile(r"\[?\b([\w/-]{1,80}\.(?:py|go|cpp|cu)):(\d{1,6})\](?: |$)")
_OWNER = re.compile(r"\(([A-Za-z][^()]{0,60})\bpid=(\d{1,9})([^()]{0,60})\)")
_PARTS = re.compile(r"(?<![A-Za-z])(?:DP|PP|TP|EP|PCP|DCP)\d{1,4}(?![A-Za-z0-9])")
_NUMBERED = re.compile(r"\brank[= ](\d{1,5})\b|\[(?:RANK |rank)(\d{1,5})\]|^\[\d+,(\d{1,5})\]<std")
_STAMPED = re.compile(
    r"\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]{0,8}((?: [A-Z]{1,4}\d{1,4}){1,6})\]"
)

_TIME = r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIX = re.compile(
    r"\s*(?:"
    r"(?:[>▎]\s?)+"  # a quotation
    r"|[\w.-]{1,80}\s{0,40}\| "  # docker compose
    rf"|\[?{_TIME}[^\]\s]{{0,3}}(?: [A-Z]{{1,4}}\d{{1,4}}){{0,6}}\]?[,:]?"
    r"|(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [\d ]\d \d\d:\d\d:\d\d \S{1,80} "
    r"[^\s\[\]:]{1,60}(?:\[\d{1,9}\])?:"  # journalctl
    r"|(?:stdout|stderr) [FP] "
    r"|\([A-Za-z][^()]{0,60}\bpid=\d{1,9}[^()]{0,60}\)|\(pid=\d{1,9}[^()]{0,60}\)"
    r"|\[pod/[^\]\s]{1,200}\]"  # kubectl logs --prefix
    r"|\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE) ?\]?(?: \d\d-\d\d \d\d:\d\d:\d\d)?(?=\s|:)"
    r"|PyProcess - [\w.-]{1,80}:"
    r")"
)


class Message(NamedTuple):
    """A message, who said it, the place of the program that printed it, and all of it."""

    text: str
    rank: str | None
    where: str
    raw: str


def messages(raw: str) -> Iterator[Message]:
    """The messages that a line holds, without what is around them."""
    for part in _parts(raw[:LONGEST_MESSAGE]):
        if part and not part.isspace():
            yield _message(part)


def _parts(raw: str) -> Iterator[str]:
    """A line cut where it holds several: progress bars, JSON strings, writers over each other."""
    plain = _CONTROLS.sub("", _COLOURS.sub("", raw)) if _is_coloured(raw) else raw
    for piece in _BREAKS.split(plain):
        if _is_json(piece):
            for inner in _JSON_BREAKS.split(piece):
                yield from _beginnings(_JSON_ESCAPE.sub(_unescaped, inner))
        else:
            yield from _beginnings(piece)


def _is_coloured(raw: str) -> bool:
    return "[" in raw or not raw.isprintable()


def _is_json(text: str) -> bool:
    """Whether it is a string of a notebook, or an object of a container's log."""
    begun = text.lstrip()
    return begun[:1] in ('"', "{") and "\\n" in begun


def _unescaped(found: re.Match[str]) -> str:
    return "\t" if found[1] == "t" else found[1]


def _beginnings(text: str) -> Iterator[str]:
    starts = [found.start() for found in _BEGINNING.finditer(text)]
    if len(starts) < 2:
        yield text
        return
    for place, start in enumerate(starts):
        end = starts[place + 1] if place + 1 < len(starts) else len(text)
        yield text[0 if place == 0 else start : end]


def _message(text: str) -> Message:
    where = _WHERE.search(text, 0, HEAD)
    head = text[: where.start() if where else HEAD]
    rest = text[where.end() :] if where else _without_prefixes(text)
    place = f"{where[1].rsplit('/', 1)[-1]}:{where[2]}" if where else ""
    return Message(rest.strip(), _rank(head), place, text)


def _without_prefixes(text: str) -> str:
    place = 0
    for _ in range(MOST_PREFIXES):
        found = _PREFIX.match(text, place)
        if found is None:
            break
        place = found.end()
    return text[place:]


def _rank(head: str) -> str | None:
    """Who says it: the parts of the layout that prefixes name, else a number, else a process."""
    if "(" in head:
        owned = _owner(head)
        if owned is not None:
            return owned
    stamped = _STAMPED.search(head)
    if stamped is not None:
        return stamped[1].strip()
    numbered = _NUMBERED.search(head)
    if numbered is not None:
        return f"rank {next(part for part in numbered.groups() if part)}"
    return None


def _owner(head: str) -> str | None:
    """Of stacked prefixes the innermost that names a worker."""
    engine = None
    for name, pid, rest in reversed(_OWNER.findall(head)):
        said = name + rest
        parts = _PARTS.findall(said.replace("_", " "))
        numbered = _NUMBERED.search(said)
        if name.startswith("EngineCore"):
            number = name.strip().removeprefix("EngineCore").strip("_DP")
            engine = f"DP{number}" if number.isdecimal() else None
        elif parts:
            return " ".join(parts)
        elif numbered:
            return f"rank {numbered[1]}"
        elif "Worker" in name and name.strip() != "Worker":
            return f"pid {pid}"
    return engine
