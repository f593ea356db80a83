"""Messages of a chat as one prompt, each part of which knows whose it is.

A served model writes messages with its own template. Here it is ChatML's, which has the order and
the boundaries that all have: tools, then every message behind its role, then the place of the
answer. Another template moves a boundary by a few tokens, and no parting to another message.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

TEMPLATE = "ChatML"
MOST_MESSAGES = 100_000


class Part(NamedTuple):
    """A piece of a prompt; ``message`` is the index of its message, None outside of one."""

    text: str
    message: int | None


class NoMessages(ValueError):
    """What is no list of messages, and why."""


def parts_of(messages: Any, tools: Any = None) -> list[Part]:
    """A prompt that ends where the answer begins.

    Raises:
        NoMessages: no list of objects with a role.
    """
    if not isinstance(messages, list) or not messages or len(messages) > MOST_MESSAGES:
        raise NoMessages("messages is no list of messages")
    parts = [Part(_written("tools", _json(tools)), None)] if tools else []
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise NoMessages(f"message {index} is no object")
        parts.append(Part(_written(_role(message, index), content_of(message)), index))
    return [*parts, Part("<|im_start|>assistant\n", None)]


def _written(role: str, content: str) -> str:
    return f"<|im_start|>{role}\n{content}<|im_end|>\n"


def _role(message: Mapping[str, Any], index: int) -> str:
    role = message.get("role")
    if not isinstance(role, str) or not role or len(role) > 100:
        raise NoMessages(f"message {index} has no role")
    return role


def content_of(message: Mapping[str, Any]) -> str:
    """The text of a message: its content, then its tool calls.

    Raises:
        NoMessages: content of another kind.
    """
    return "".join(_contents(message))


def _contents(message: Mapping[str, Any]) -> Iterator[str]:
    content = message.get("content")
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        yield from map(_piece, content)
    elif content is not None:
        raise NoMessages("content that is neither a text nor a list")
    if message.get("tool_calls"):
        yield _json(message["tool_calls"])


def _piece(piece: Any) -> str:
    """A text piece as it is; an image, sound or file as what names it."""
    if isinstance(piece, dict) and isinstance(piece.get("text"), str):
        text: str = piece["text"]
        return text
    return _json(piece)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def joined(parts: Sequence[Part]) -> str:
    """The prompt."""
    return "".join(part.text for part in parts)
