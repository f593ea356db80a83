"""Any bytes as a trace, and as requests, end in an answer or a sentence.

python -m tests.fuzz.traces -max_total_time=60 [corpus folder]
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kvplan.simulation.traces", "kvplan.simulation.prefix"]):
    from kvplan.core.errors import KvplanError
    from kvplan.simulation.prefix.ask import prefix
    from kvplan.simulation.traces import read_traffic

# The beginnings of every format, so that mutation starts behind the sniffing.
SEEDS = (
    b'{"timestamp": 0, "input_length": 600, "output_length": 9, "hash_ids": [0, 1]}\n',
    b'{"chat_id": 1, "parent_chat_id": -1, "input_length": 9, "output_length": 1}\n',
    b'{"id": "a", "block": 64, "r": [[0.0, 100, 9, 1.0, 0.0, [[1, 2]]]]}\n',
    b'{"messages": [{"role": "user", "content": "hello"}]}\n',
    b'[{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]},\n',
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n",
    b'{"w": {"window_s": 1, "fleet_rate_rps": [1], "top": []}}\n',
    b"A line of text.\n",
)


def one(data: bytes) -> None:
    """A trace of arbitrary bytes, alone and behind a real line."""
    for text in (data, SEEDS[len(data) % len(SEEDS)] + data):
        for ask in (read_traffic, prefix):
            try:
                ask(text)
            except KvplanError:
                continue


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
