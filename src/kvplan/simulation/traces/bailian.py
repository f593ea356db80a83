"""Qwen's Bailian traces: chats whose turns name the one before, blocks of 16 tokens.

{"chat_id", "parent_chat_id", "timestamp" s, "input_length", "output_length", "type", "turn",
"hash_ids"} (alibaba-edu/qwen-bailian-usagetraces-anon).
"""

from __future__ import annotations

from typing import Any

from kvplan.simulation.traces.base import Reading, Row, Take
from kvplan.simulation.traces.columns import BadRow, Columns

NAME = "bailian"
BLOCK = 16


def claims(row: Row) -> bool:
    """By the chats."""
    return "chat_id" in row and "input_length" in row


def reader(row: Row, columns: Columns, reading: Reading) -> Take:
    """One row, one request; a turn waits for its parent unless arrivals are taken as recorded."""
    columns.hash_block = BLOCK
    waits = reading.recorded is False
    seen: dict[Any, int] = {}

    def take(_: int, row: Row) -> None:
        ids, own, parent = row.get("hash_ids", []), row.get("chat_id"), row.get("parent_chat_id")
        if type(ids) is not list:
            raise BadRow("hash_ids is no list")
        if not isinstance(own, str | int) or not isinstance(parent, str | int | None):
            raise BadRow("a chat_id that is neither a number nor a text")
        before = seen.get(parent, -1) if waits else -1
        at = row.get("timestamp")
        seen[own] = columns.add(
            arrival_s=at,
            prompt_tokens=row.get("input_length"),
            output_tokens=row.get("output_length"),
            ids=ids,
            after=before,
            think_s=_gap(columns, before, at),
        )

    return take


def _gap(columns: Columns, before: int, at: Any) -> float:
    """Seconds since the parent was sent: the trace does not say when it was answered."""
    if before < 0 or not isinstance(at, int | float):
        return 0.0
    return max(0.0, at - columns.arrival_s[before])
