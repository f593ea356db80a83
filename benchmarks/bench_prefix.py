"""Prefix hits on Mooncake's conversation trace: our figures and time beside kvcache-simulator's.

Both read the same file and answer the same question in a process of their own: fifo, lru and the
optimum in four pools, over the last half of the requests. The peer's pools are given in GiB of a
model whose token takes 327,680 bytes, which makes them 409, 1,638, 6,553 and 26,214 blocks; its
compiled backend is warm, and its Python one is timed once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import kvplan
from benchmarks.timing import command, in_turn, peer

TRACE = Path(__file__).parent.parent / "tests/reference/traces/mooncake_conversation.jsonl.gz"
BLOCKS = (409, 1638, 6553, 26214)
POLICIES = {"fifo": "fifo", "lru": "lru", "optimum": "optimal"}
OURS = (
    str(Path(sys.executable).parent / "kvplan"), "prefix", str(TRACE), "--engine", "none",
    "--warm-up", "0.5", "--pool-blocks", ",".join(map(str, BLOCKS)), "--json",
)  # fmt: skip
THEIRS = (
    "-m", "kvcache_sim", "run", "--trace", str(TRACE), "--model", "llama-3.1-70b",
    "--kv-precision", "bf16_fp16", "--block-size", "512", "--budgets-gib", "64,256,1024,4096",
    "--format", "json", "--no-progress",
)  # fmt: skip


def ours() -> dict[tuple[int, str], float]:
    """Hit rates by blocks and policy, and of a pool without end."""
    answer = kvplan.prefix(TRACE, engine="none", warm_up=0.5, pool_blocks=BLOCKS)
    found = {(row.blocks, row.policy): row.hit_rate for row in answer.pools}
    return found | {(0, "ceiling"): answer.hit_rate}


def theirs(python: Path, *more: str) -> dict[tuple[int, str], float]:
    """The peer's, by the same keys."""
    done = subprocess.run(
        [str(python), *THEIRS, *more], capture_output=True, text=True, check=True, timeout=600
    )
    result: dict[str, Any] = json.loads(done.stdout)
    found = {
        (point["cacheBlocks"], own): point["results"][name]["hitRate"]
        for point in result["points"]
        for own, name in POLICIES.items()
    }
    return found | {(0, "ceiling"): result["hitRateCeiling"]}


def main() -> None:
    """Figures side by side, then commands in turn."""
    mine = ours()
    python = peer("kvcache-simulator==0.1.3")
    if python is None:
        for (blocks, policy), rate in mine.items():
            print(f"{blocks:>7,} {policy:8} {rate:.4%}")
        return
    other = theirs(python)
    for key, rate in mine.items():
        blocks, policy = key
        print(f"{blocks:>7,} {policy:8} {rate:.4%} against {other.get(key, float('nan')):.4%}")
    warm = command(str(python), *THEIRS)
    print(f"kvplan prefix against kvcache-simulator, C++: {in_turn(command(*OURS), warm, runs=5)}")
    start = time.perf_counter()
    theirs(python, "--backend", "python")
    print(f"kvcache-simulator, Python: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
