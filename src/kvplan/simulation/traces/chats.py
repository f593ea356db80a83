"""Chats as text: ShareGPT's conversations and OpenAI-style messages.

Every human turn is a request whose prompt is all that was said before it; the answer's length is
that of the answer that stands there. Tokens are a tokenizer's where one is named, else estimated.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kvplan.core.units import MIB, format_bytes
from kvplan.simulation.prompts.blocks import BlockIds
from kvplan.simulation.prompts.encoder import LONGEST_TEXT, Encoder, encoder_of
from kvplan.simulation.prompts.messages import NoMessages, content_of, joined, parts_of
from kvplan.simulation.traces.base import Reading, Row, Take
from kvplan.simulation.traces.columns import BadRow, Columns

NAME = "chats"
BLOCK = 16
MOST_TOGETHER = 512 * MIB  # of a chat's prompts
# ShareGPT's speakers; a name that is not here is a role of its own.
ROLES = {"human": "user", "function": "tool"} | dict.fromkeys(
    ("gpt", "chatgpt", "bing", "bard"), "assistant"
)


def claims(row: Row) -> bool:
    """By a list of what was said."""
    return messages_of(row) is not None


def messages_of(row: Row) -> Any:
    """The messages of a row, OpenAI's batch form (``body``) among them; None where it has none."""
    body = row.get("body")
    inner = body if isinstance(body, dict) else row
    if isinstance(inner.get("conversations"), list):
        return [_said(one) for one in inner["conversations"]]
    return inner.get("messages")


def _said(one: Any) -> Any:
    """A ShareGPT turn as a message."""
    if not isinstance(one, dict) or not isinstance(one.get("from"), str):
        return one
    return {"role": ROLES.get(one["from"], one["from"]), "content": one.get("value")}


def reader(row: Row, columns: Columns, reading: Reading) -> Take:
    """One row, a request for each of its answers, the next after the one before."""
    columns.hash_block = BLOCK
    encoder = encoder_of(reading.tokenizer, offline=reading.offline)
    columns.note(f"Tokens are {encoder.name}'s." if not encoder.estimated else
                 f"Tokens are {encoder.name}; name a --tokenizer for exact ones.")  # fmt: skip
    blocks = BlockIds(BLOCK)
    rest = int(reading.output.mean)

    def take(_: int, row: Row) -> None:
        try:
            _take(row, columns, encoder, blocks, rest, waits=not reading.recorded)
        except NoMessages as why:
            raise BadRow(str(why)) from None

    return take


def _take(
    row: Row, columns: Columns, encoder: Encoder, blocks: BlockIds, rest: int, *, waits: bool
) -> None:
    inner = row.get("body") if isinstance(row.get("body"), dict) else row
    messages, after = messages_of(row), -1
    check_chat(messages)
    arrival = row.get("timestamp", row.get("created", 0))
    for end, answer in list(_turns(messages)):
        parts = parts_of(messages[:end], inner.get("tools") if inner else None)
        prompt = encoder.encode(joined(parts))
        output = len(encoder.encode(answer)) if answer else _limit(row, rest)
        after = columns.add(
            arrival_s=arrival,
            prompt_tokens=len(prompt),
            output_tokens=max(1, output),
            ids=blocks.of(prompt),
            after=after if waits else -1,
        )
        if columns.full:
            return


def check_chat(messages: Any) -> None:
    """A chat whose prompts, each with all that was said before it, can be held.

    Raises:
        NoMessages: no list of messages.
        BadRow: more text than that.
    """
    parts_of(messages)
    size = sum(len(content_of(message)) for message in messages)
    prompts = 1 + sum(message.get("role") == "assistant" for message in messages)
    if size > LONGEST_TEXT or size * prompts > MOST_TOGETHER:
        raise BadRow(f"a chat of {prompts:,} turns and {format_bytes(size)}")


def _turns(messages: list[Any]) -> Iterator[tuple[int, str]]:
    """Where each prompt ends, and the answer that follows it; the last may have none."""
    for index, message in enumerate(messages):
        if index and message.get("role") == "assistant":
            yield index, content_of(message)
    if messages[-1].get("role") != "assistant":
        yield len(messages), ""


def _limit(row: Row, rest: int) -> int:
    """The length of an answer that is not there: as recorded, as limited, or as assumed."""
    for name in ("output_tokens", "completion_tokens", "max_completion_tokens", "max_tokens"):
        for place in (row.get("usage"), row.get("response"), row.get("body"), row):
            value = place.get(name) if isinstance(place, dict) else None
            if type(value) is int and value > 0:
                return value
    return rest
