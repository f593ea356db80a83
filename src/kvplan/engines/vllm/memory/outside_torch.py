"""Memory that is not torch's: kernels, communicators, and the buffers of fused reductions.

    one rank          0.06 to 0.13 GiB of kernels that are loaded; 0.25 while graphs are profiled
                      inside the measurement (0.18 to 0.25)
    several, <= 0.10  the communicators count: the first measurement was before they were made
    several, >= 0.17  Hopper and Blackwell fuse all-reduce with the norm: FlashInfer's workspace

vllm/v1/worker/gpu_worker.py, init_device (0.10.2 and 0.11.2: the order of the snapshot and the
communicators), determine_available_memory (0.17.0, 0.19.0, 0.26.0); config/vllm.py,
enable_allreduce_rms_fusion (0.17.0, absent in 0.16.0).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kvplan.core.units import GIB
from kvplan.core.version import ByVersion, Version
from kvplan.engines.vllm.memory.batch import Batch
from kvplan.engines.vllm.memory.machine import Machine

# GiB; measured on H100: 0.13 in 0.15 to 0.17, 0.25 in 0.18 and 0.19; 0.06 on an RTX PRO 6000
# (0.12); 0.04 to 0.26 in V0.
KERNELS: ByVersion[float] = ByVersion((("0.2", 0.15), ("0.8", 0.1), ("0.18", 0.25), ("0.26", 0.15)))
KERNELS_ERROR: Final = 0.1

COMMUNICATORS_INSIDE_UNTIL = Version((0, 11))
FUSED_SINCE = Version((0, 17))
# 2.06 at two ranks, 2.13 at four, 0.02 to 0.08 more for wide models (seven models, 0.19).
FUSED: dict[int, float] = {2: 1.81, 4: 1.88}
FUSED_OTHER: Final = 2.0
COMMUNICATORS: Final = 2.2
COMMUNICATORS_WITHOUT_PEERS: Final = 0.5
GROUP: Final = 0.1
PER_HIDDEN: Final = 1.6e-5  # GiB a column of the hidden states beyond 4,096


class OutsideTorch(NamedTuple):
    """Bytes, their error and where they come from."""

    num_bytes: int
    error: int
    source: str


def outside_torch(
    batch: Batch, machine: Machine, version: Version, *, replicas: int, eager: bool
) -> OutsideTorch:
    """What a rank takes beside torch's own memory; without compilation nothing is fused."""
    kernels = KERNELS.at(version)
    if batch.tp * batch.pp == 1:
        return _bytes(kernels, KERNELS_ERROR, "kernels, measured on other cards")
    if version < COMMUNICATORS_INSIDE_UNTIL:
        more = COMMUNICATORS if machine.peers else COMMUNICATORS_WITHOUT_PEERS
        return _bytes(kernels + more, 0.5, "kernels and communicators, measured on H100 and L40S")
    alone = batch.pp == replicas == 1 and not eager
    if version >= FUSED_SINCE and machine.fuses_reductions and batch.tp > 1 and alone:
        wide = PER_HIDDEN * max(0, batch.hidden - 4096)
        fused = FUSED.get(batch.tp, FUSED_OTHER) + wide
        said = "kernels and the workspace of fused reductions, measured on H100"
        return _bytes(kernels + fused, 0.06 if batch.tp in FUSED else 0.4, said)
    if batch.tp == 1:
        return _bytes(0.07, 0.1, "kernels of a pipeline stage, measured on H100")
    return _bytes(kernels + GROUP, 0.25, "kernels and buffers of custom reductions")


def _bytes(gib: float, error: float, source: str) -> OutsideTorch:
    return OutsideTorch(round(gib * GIB), round(error * GIB), source)
