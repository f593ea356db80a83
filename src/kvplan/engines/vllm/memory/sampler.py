"""What the profile run's sampler holds at its peak: bytes a logit, by version and runner.

    bytes = sequences × vocabulary × c + a buffer of the kernel

    <= 0.16          c = b + 36   logits, float32 logits, and PyTorch's sort: values 4, indices 8,
                                  and both again in its buffers with the scatter
    0.17 to 0.20.1   c = b + 12   logits, float32 logits, probabilities, noise; Triton keeps
                                  4 B a token of the vocabulary for a row a multiprocessor
    >= 0.21          c = b + 12   FlashInfer: logits, float32, masked logits, probabilities
    second runner    c = b + 4    logits and a float32 copy; since 0.28 the copy is made only for
                                  requests that need it, and the profile run's do not

vllm/v1/sample/ops/topk_topp_sampler.py (0.15.0, 0.19.0, 0.21.0), v1/sample/sampler.py,
v1/worker/gpu/sample/sampler.py (0.25.1, 0.28.0). Exact to 0.006 GiB on 37 runs of 0.15 to 0.19;
nothing was measured of FlashInfer and of the second runner.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.units import ceil_div
from kvplan.core.version import Version
from kvplan.engines.vllm.memory.batch import Batch

SORTED: Final = 36
FUSED: Final = 12
TRITON_ROWS: Final = 132  # streaming multiprocessors of an H100
TRITON_BYTES: Final = 4
TRITON_LEAST_ROWS: Final = 8  # fewer sequences are sorted by PyTorch
TRITON_SINCE, FLASHINFER_SINCE = Version((0, 17)), Version((0, 21))
LAZY_COPY_SINCE = Version((0, 28))

MEASURED_ERROR: Final = 0.01
READ_ERROR: Final = 0.3


class Sampler(NamedTuple):
    """The sampler's peak; ``kept`` is what the second runner keeps for penalties all the time."""

    peak: int
    kept: int
    error: int
    bytes_per_logit: int


def sampler_of(batch: Batch, version: Version, second_runner: bool) -> Sampler:
    """The sampler of a profile run, the rows that it gathers included."""
    logits = batch.sequences * batch.vocabulary
    if second_runner:
        copied = 0 if version >= LAZY_COPY_SINCE else 4
        each = batch.element_bytes + copied
        # v1/worker/gpu/sample/penalties.py: int32 counts of every token of every sequence, and a
        # bit of each.
        kept = logits * 4 + batch.sequences * ceil_div(batch.vocabulary, 32) * 4
        rows = batch.sequences * batch.hidden * batch.element_bytes
        peak = logits * each + rows
        return Sampler(peak, kept, round(peak * READ_ERROR + kept * 0.05), each)
    each, buffer, error = batch.element_bytes + FUSED, 0, MEASURED_ERROR
    if version >= FLASHINFER_SINCE:
        error = READ_ERROR
    elif version < TRITON_SINCE or batch.sequences < TRITON_LEAST_ROWS:
        each = batch.element_bytes + SORTED
    else:
        buffer = min(TRITON_ROWS, batch.sequences) * batch.vocabulary * TRITON_BYTES
    rows = 2 * batch.sequences * batch.hidden * batch.element_bytes
    peak = logits * each + buffer + rows
    return Sampler(peak, 0, round(peak * error), each)
