"""The settings that vLLM prints: a dict, a Namespace, or the engine's own config.

    non-default args: {'model': 'Qwen/Qwen3-32B', 'max_model_len': 40960, 'kv_transfer_config': …}
    args: Namespace(model='…', tensor_parallel_size=2, …)
    Initializing a V1 LLM engine (v0.25.1) with config: model='…', max_seq_len=40960, …

They are text of a stranger: they are cut at commas outside quotes and brackets, never evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

MOST_SETTINGS = 512
LONGEST_VALUE = 4096
_SPECIAL = re.compile(r"""['"]|[\[\](){}]|,""")
_OPEN, _CLOSE = "([{", ")]}"
_NAME = re.compile(r"""['"]?([A-Za-z_]\w{0,60})['"]?\s*[=:]\s*""")
_TYPED = re.compile(r"<[\w.]{1,80}: '?([\w.-]{1,80})'?>")  # an enumeration's member

# The engine's config has some flags under names of its own.
RENAMED = {"max_seq_len": "max_model_len", "model_tag": "model", "model_path": "model"}


def settings(text: str) -> Iterator[tuple[str, str]]:
    """Names and values at the outer level; None and empty values are left out."""
    for count, part in enumerate(_top_level(text)):
        if count == MOST_SETTINGS:
            return
        named = _NAME.match(part.lstrip("{( "))
        if named is None:
            continue
        value = _plain(part.lstrip("{( ")[named.end() :].strip())
        if value:
            yield RENAMED.get(named[1], named[1]), value


def _top_level(text: str) -> Iterator[str]:
    """The parts between commas that no quote or bracket encloses."""
    text = text[1:] if text[:1] in ("{", "(") else text
    start, depth, quote = 0, 0, ""
    for found in _SPECIAL.finditer(text):
        mark = found[0]
        if quote:
            if mark == quote and text[found.start() - 1 : found.start()] != "\\":
                quote = ""
        elif mark in "'\"":
            if not text[found.start() - 1 : found.start()].isalnum():  # no apostrophe
                quote = mark
        elif mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            depth -= 1
            if depth < 0:
                yield text[start : found.start()]
                return
        elif depth == 0:
            yield text[start : found.start()]
            start = found.end()
    yield text[start:]


def _plain(value: str) -> str:
    """A value's text without quotes, types and a list's only brackets."""
    if value in ("", "None", "''", '""', "[]", "{}") or len(value) > LONGEST_VALUE:
        return ""
    typed = _TYPED.fullmatch(value)
    if typed:
        return typed[1]
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        return value[1:-1]
    if value[0] == "[" and value[-1] == "]" and "," not in value:
        return value[1:-1].strip("'\"")
    return value.removeprefix("torch.")
