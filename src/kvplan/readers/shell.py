r"""A pasted shell text to its commands: quotes, continuations, variables. Nothing is ever run.

    export TP=2                                     a variable for what follows
    HF_HOME=/x vllm serve Qwen/Qwen3-32B \           a command with a variable of its own
      --tensor-parallel-size $TP  > log 2>&1        continued; where its output goes is left out

What cannot be known without running something (``$(nproc)``, a variable that is not set) stays as
it is written, so that the flag which has it is named by whoever reads its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kvplan.core.errors import BadValue

LONGEST = 1 << 17  # what Linux takes as one argument (MAX_ARG_STRLEN)

_PIECE = re.compile(
    r"""
    (?P<space>[ \t\r\f\v]+ | [\\`^][ \t]*\r?\n)      # a continuation of sh, PowerShell or cmd
  | (?P<redirect>(?:\d*|&)(?:<<<|<<-?|[<>]{1,2})(?:&(?:\d+|-))?\|?)
  | (?P<run>\$\((?:[^()]|\([^()]*\))*\) | `[^`\n]*`)
  | (?P<end>&&|\|\|?&?|;;?|&|\n|[()])
  | '(?P<single>[^']*)'
  | "(?P<double>(?:[^"\\]|\\.)*)"
  | \\(?P<escaped>.)
  | (?P<plain>(?:[^\s'"\\;&|()<>`$]|\$(?!\())+ | `)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r'\\(?:([$`"\\])|\r?\n)')
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^{}]*))?\}|([A-Za-z_]\w*))")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)


class Command(NamedTuple):
    """The words of one command and the variables that it sees, of the text's own."""

    words: tuple[str, ...]
    variables: Mapping[str, str]


def expand(text: str, variables: Mapping[str, str]) -> str:
    """A text with the variables that are known, and with ``${NAME:-default}``.

    Raises:
        BadValue: what comes of it is longer than a command line can be.
    """
    if "$" not in text:
        return text

    def value(match: re.Match[str]) -> str:
        return variables.get(match[1] or match[3], match[2]) or (
            "" if match[2] is not None else match[0]
        )

    found = _VARIABLE.sub(value, text)
    if len(found) > LONGEST:
        raise BadValue(f"The variables of the command line grow past {LONGEST >> 10} KiB.")
    return found


def read_commands(text: str, variables: Mapping[str, str] | None = None) -> list[Command]:
    """The commands of a text in their order.

    Raises:
        BadValue: longer than a command line can be, a NUL byte, or a quote that is not closed.
    """
    if len(text) > LONGEST:
        raise BadValue(
            f"The command line has {len(text):,} characters; one has {LONGEST:,} at most.",
            "Give the one command that starts the engine.",
        )
    if "\0" in text:
        raise BadValue("The command line holds a NUL byte.")
    known = dict(variables or {})
    commands = []
    for words in _simple_commands(text, known):
        own, rest = _assigned(words)
        if rest:
            commands.append(Command(tuple(rest), {**known, **own}))
        else:
            known |= own
    return commands


def _assigned(words: list[str]) -> tuple[dict[str, str], list[str]]:
    """The variables that stand before a command, and the command; ``export`` is none."""
    place = 1 if words[0] in ("export", "set", "env") else 0
    found = {}
    while place < len(words) and (match := _ASSIGNMENT.fullmatch(words[place])):
        found[match[1]] = match[2]
        place += 1
    return found, words[place:] if found or words[0] != "export" else []


def _simple_commands(text: str, known: Mapping[str, str]) -> Iterator[list[str]]:
    """The words of each command, quotes taken away; ``known`` grows between two of them."""
    words: list[str] = []
    word: str | None = None
    is_target = False
    for kind, piece in _pieces(text):
        if kind in ("space", "end", "redirect"):
            if word is not None and not is_target:
                words.append(word)
            is_target = kind == "redirect" or (is_target and word is None and kind == "space")
            word = None
            if kind == "end" and words:
                yield words
                words = []
            continue
        word = (word or "") + _value(kind, piece, known)
        if len(word) > LONGEST:
            raise BadValue(f"A word of the command line grows past {LONGEST >> 10} KiB.")
    if word is not None and not is_target:
        words.append(word)
    if words:
        yield words


def _value(kind: str, piece: str, known: Mapping[str, str]) -> str:
    if kind == "plain":
        return expand(piece, known)
    if kind == "double":
        return expand(_ESCAPED.sub(lambda match: match[1] or "", piece), known)
    return piece


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Quoted and plain parts, spaces and ends, without comments."""
    place, begins = 0, True
    while place < len(text):
        if begins and text[place] == "#":
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
            continue
        match = _PIECE.match(text, place)
        if match is None or match.lastgroup is None:
            raise BadValue(
                f"The command line has a {text[place]} that is not closed: {text[place:][:40]!r}."
            )
        if match.lastgroup == "redirect" and match[0].endswith(("&-", "&1", "&2")):
            yield "space", ""
        else:
            yield match.lastgroup, match[match.lastgroup]
        begins = match.lastgroup in ("space", "end")
        place = match.end()
