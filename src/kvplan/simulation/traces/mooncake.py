"""Mooncake's JSONL, and what took it over: lengths and the ids of the prompt's blocks.

    {"timestamp": ms, "input_length": n, "output_length": n, "hash_ids": [...]}

A row may say its ``block_size`` (kvcache-simulator's form); Mooncake's own are of 512 tokens
(kvcache-ai/Mooncake 3b5a594, FAST25-release/traces).
"""

from __future__ import annotations

from kvplan.simulation.traces.base import Reading, Row, Take
from kvplan.simulation.traces.columns import BadRow, Columns

NAME = "mooncake"
BLOCK = 512


def claims(row: Row) -> bool:
    """By the lengths' names and the ids."""
    return "input_length" in row and ("hash_ids" in row or "output_length" in row)


def reader(row: Row, columns: Columns, reading: Reading) -> Take:
    """One row, one request; arrivals are milliseconds."""
    block = columns.hash_block = _block(row)

    def take(_: int, row: Row) -> None:
        if _block(row) != block:
            raise BadRow(f"blocks of {_block(row)} tokens after blocks of {block}")
        ids = row.get("hash_ids", ())
        if type(ids) is not list and ids != ():
            raise BadRow("hash_ids is no list")
        columns.add(
            arrival_s=_milliseconds(row.get("timestamp", 0)),
            prompt_tokens=row.get("input_length"),
            output_tokens=row.get("output_length", 1),
            ids=ids,
            priority=row.get("priority", 0),
        )

    return take


def _block(row: Row) -> int:
    block = row.get("block_size", BLOCK)
    return block if type(block) is int and 1 <= block <= 1 << 20 else BLOCK


def _milliseconds(value: object) -> object:
    return value / 1000 if isinstance(value, int | float) and abs(value) < 1e300 else value
