"""Any bytes as a log end in an answer or a sentence.

python -m tests.fuzz.explain -max_total_time=60 [corpus folder]
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kvplan.logs", "kvplan.readers.json_text"]):
    from kvplan.core.errors import KvplanError
    from kvplan.logs.read import read_log

# Real wordings, so that mutation starts where the readers do something.
SEEDS = (
    b"(EngineCore_DP0 pid=9) INFO [kv_cache_utils.py:1319] GPU KV cache size: 8 tokens",
    b"llama_kv_cache: size = 8704.00 MiB ( 69632 cells,  32 layers,  4/1 seqs), K (f16): 1 MiB",
    b"KV Cache is allocated. #tokens: 10471, K size: 0.64 GB, V size: 0.64 GB",
    b"[MemUsageChange] Allocated 3.48 GiB for max tokens in paged KV cache (28512).",
)


def one(data: bytes) -> None:
    """A log of arbitrary bytes, alone and behind a real line."""
    for text in (data, SEEDS[len(data) % len(SEEDS)] + b"\n" + data):
        try:
            read_log(text)
        except KvplanError:
            continue


if __name__ == "__main__":
    atheris.Setup(sys.argv, one)
    atheris.Fuzz()
