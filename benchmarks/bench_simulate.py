"""`simulate`: requests a second, growth, memory, a cold start, and Mooncake's whole trace.

Beside aisimulate (its compiled replay, constant step times) and vLLM's own KVCacheManager, which
only allocates and frees. All times are the processor's, of one core, medians of three runs.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.simulators import VLLM, Timed, aisimulate, theirs, timed
from benchmarks.timing import ROOT

TRACE = ROOT / "tests/reference/traces/mooncake_conversation.jsonl.gz"
REQUESTS, TOKENS = 20_000, 1200  # a request of 1,000 in and 200 out
SIZES = (10_000, 100_000, 1_000_000)

# Runs in vLLM's environment: 256 requests at a time, each allocated whole, decoded, freed.
MANAGER = """
import json, sys, time, logging
logging.disable(logging.CRITICAL)
import torch
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import get_hash_fn_by_name
from vllm.v1.core.kv_cache_manager import KVCacheManager
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.request import Request
fn = get_hash_fn_by_name("sha256"); init_none_hash(fn); hasher = get_request_block_hasher(16, fn)
spec = FullAttentionSpec(block_size=16, num_kv_heads=8, head_size=128, dtype=torch.bfloat16)
config = KVCacheConfig(num_blocks=30000, kv_cache_tensors=[],
                       kv_cache_groups=[KVCacheGroupSpec(["l"], spec)])
manager = KVCacheManager(config, max_model_len=131072, scheduler_block_size=16, hash_block_size=16)
count, start, total = int(sys.argv[1]), None, 0
start = time.process_time()
for first in range(0, count, 256):
    batch = []
    for number in range(first, min(first + 256, count)):
        prompt = [(number * 1000 + place) % 30000 for place in range(1000)]
        request = Request(request_id=str(number), prompt_token_ids=prompt, pooling_params=None,
                          sampling_params=SamplingParams(max_tokens=200), block_hasher=hasher)
        blocks, hit, *_ = manager.get_computed_blocks(request)
        assert manager.allocate_slots(request, 1000 - hit, hit, blocks) is not None
        request.num_computed_tokens = 1000
        batch.append(request)
    for _ in range(199):
        for request in batch:
            request.append_output_token_ids(7)
            assert manager.allocate_slots(request, 1) is not None
            request.num_computed_tokens += 1
    for request in batch:
        manager.free(request)
print(json.dumps({"cpu_s": time.process_time() - start}))
"""


def ours(*words: str, **environment: str) -> Timed:
    """Our process."""
    return timed([sys.executable, "-m", "benchmarks.simulated", *words], environment)


def median(runs: list[float]) -> float:
    """Of three."""
    return statistics.median(runs)


def growth() -> None:
    """Time by the number of requests, and what each more takes of memory."""
    found = [ours("loop", str(size)).said for size in SIZES]
    for size, said in zip(SIZES, found, strict=True):
        print(f"{size:>9,} requests: {said['cpu_s']:.2f} s, {size / said['cpu_s']:,.0f} a second")
    more = (found[-1]["held_bytes"] - found[0]["held_bytes"]) / (SIZES[-1] - SIZES[0])
    print(f"  {more:,.0f} bytes a request, its columns of traffic and outcome among them")


def cold() -> None:
    """The first run of all, which compiles."""
    with tempfile.TemporaryDirectory() as folder:
        took = ours("loop", "1000", NUMBA_CACHE_DIR=folder)
        warm = ours("loop", "1000", NUMBA_CACHE_DIR=folder)
    print(f"1,000 requests, with nothing compiled: {took.cpu_s:.1f} s; again {warm.cpu_s:.1f} s")


def beside_aisimulate(command: Path) -> None:
    """The closed loop, then the trace."""
    load = {"type": "concurrency", "concurrency": 256}
    shape = {"type": "synthetic", "input_tokens": 1000, "output_tokens": 200}
    mine = median([ours("loop", str(REQUESTS)).cpu_s for _ in range(3)])
    other = median([theirs(command, shape, load, REQUESTS).cpu_s for _ in range(3)])
    print(f"{REQUESTS:,} x 1,000/200 at 256, whole processes: {mine:.2f} s against aisimulate's "
          f"{other:.2f} s: ratio {mine / other:.2f}")  # fmt: skip
    plain = trace_file()
    trace = {"type": "trace", "paths": [str(plain)], "format": "mooncake", "block_size": 512}
    mine = median([ours("trace", str(TRACE)).cpu_s for _ in range(3)])
    try:
        other = theirs(command, trace, {"type": "trace_timestamps"}, 0).cpu_s
        said = f"against aisimulate's {other:.2f} s: ratio {mine / other:.2f}"
    except Exception as error:  # whatever it does not take
        said = f"aisimulate does not take it ({type(error).__name__})"
    print(f"Mooncake's conversations, 12,031 requests, whole processes: {mine:.2f} s, {said}")


def trace_file() -> Path:
    """The trace without compression, which the peer does not read."""
    import gzip

    path = Path(tempfile.gettempdir()) / "kvplan-mooncake.jsonl"
    path.write_bytes(gzip.decompress(TRACE.read_bytes()))
    return path


def beside_vllm() -> None:
    """The manager alone: no scheduler, no clock."""
    count = 1024
    other = timed([str(VLLM), "-c", MANAGER, str(count)]).said["cpu_s"] / count
    mine = ours("loop", str(REQUESTS)).said["cpu_s"] / REQUESTS
    print(
        f"A request's cache, 1,000/200: {mine * 1e6:,.0f} µs with scheduler and clock, vLLM's "
        f"KVCacheManager alone {other * 1e6:,.0f} µs: ratio {mine / other:.4f}"
    )


def main() -> None:
    """Ours by size, cold, then beside others."""
    ours("loop", "100")  # compiles, where nothing is yet
    growth()
    cold()
    command = aisimulate()
    if command is not None:
        beside_aisimulate(command)
    if VLLM.exists():
        beside_vllm()


if __name__ == "__main__":
    main()
