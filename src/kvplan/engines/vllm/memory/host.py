"""Where the memory goes when vLLM runs on the CPU: no profile, no graphs, the pool as it is set.

requested = total of the NUMA node × fraction
pool      = VLLM_CPU_KVCACHE_SPACE, else requested less what the process holds after a first pass

vLLM 0.32.0, v1/worker/cpu_worker.py, determine_available_memory.
"""

from __future__ import annotations

import math
from typing import Final

from kvplan.core.ledger import Ledger, Term
from kvplan.core.units import GIB, MIB, format_bytes
from kvplan.engines.weights import RankWeights

# "memory was consumed by non-kv usages" less the weights: SmolLM2-135M 0.85 GiB and 1.03 compiled,
# Gemma-3-270m, with a vocabulary of 262,144, 1.38 GiB.
PROCESS: Final = 1100 * MIB
PROCESS_ERROR: Final = GIB // 2
PROCESS_SAID: Final = "code, libraries and a first pass, measured on two small models"


def host_ledger(
    total: int, weights: RankWeights | None, *, utilization: float, pool_bytes: int | None
) -> Ledger:
    """The terms of one worker on its NUMA node; the last is the pool.

    Args:
        total: the node's memory.
        weights: the worker's.
        utilization: ``--gpu-memory-utilization``, whose share of the node's memory is meant.
        pool_bytes: the pool, where it is set.
    """
    requested = math.ceil(total * utilization)
    terms = [_weights(weights), _term("process", PROCESS, PROCESS_ERROR, PROCESS_SAID)]
    taken = sum(term.num_bytes for term in terms)
    error = 0 if pool_bytes is not None else PROCESS_ERROR
    source = f"{format_bytes(requested)} requested ({utilization:g} of the total) less the above"
    pool = requested - taken if pool_bytes is None else pool_bytes
    free = total - taken - pool
    terms.append(
        Term(
            name="left_free",
            num_bytes=free,
            source=f"{format_bytes(total)} of the node, less all else",
            error_bytes=PROCESS_ERROR - error,
            inside_budget=False,
        )
    )
    terms.append(_term("kv_pool", pool, error, source if pool_bytes is None else "flag"))
    return Ledger(tuple(terms))


def _weights(found: RankWeights | None) -> Term:
    if found is None:
        return _term("weights", 0, 0, "unknown: pass --weights-bytes")
    return _term("weights", found.num_bytes, found.error_bytes, found.source)


def _term(name: str, num_bytes: int, error: int, source: str) -> Term:
    return Term(name=name, num_bytes=num_bytes, source=source, error_bytes=error)
