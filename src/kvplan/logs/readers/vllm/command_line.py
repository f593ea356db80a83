r"""A command that starts vLLM, as people paste it beside their log.

    $ vllm serve Qwen/Qwen3-32B \
        --tensor-parallel-size 4          continued on the lines below

It is a stranger's text: its words are taken apart as a shell does, and nothing is run or opened.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kvplan.core.errors import BadValue
from kvplan.readers.shell import read_commands

# At a line's beginning, behind a prompt or variables, so that no sentence is taken for a command.
_BEGINS = re.compile(
    r"(?:\S{0,80}[$#%>] ?)?(?:\w{1,60}=\S{1,200} {1,4}){0,16}"
    r"(?:vllm serve|python3? -m vllm\.entrypoints\.openai\.api_server) "
)
_SHORT = {
    "tp": "tensor_parallel_size", "pp": "pipeline_parallel_size", "dp": "data_parallel_size",
}  # fmt: skip


def command_settings(text: str, after: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Settings of a command by their names: ``tensor_parallel_size``, ``4``; a switch is True.

    None where the line begins none, or where its quotes are not closed.
    """
    begun = _BEGINS.match(text)
    if begun is None:
        return
    lines = [text[begun.end() :]]
    for line in after:
        if not lines[-1].endswith("\\"):
            break
        lines.append(line)
    try:
        commands = read_commands("\n".join(lines).rstrip("\\"))
    except BadValue:
        return
    if commands:
        yield from _settings(commands[0].words)


def _settings(words: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if words and not words[0].startswith("-"):
        yield "model", words[0]
    for place, word in enumerate(words):
        if not word.startswith("-") or word.lstrip("-")[:1].isdecimal():
            continue
        name, _, value = word.lstrip("-").partition("=")
        following = words[place + 1] if place + 1 < len(words) else "-"
        if not value:
            value = "True" if following.startswith("--") or following == "-" else following
        name = name.replace("-", "_")
        yield _SHORT.get(name, name), value
