"""The cache pool that a start states, in one form for every engine.

vLLM prints what one rank has for its cache and the tokens of all; SGLang and llama.cpp the bytes of
keys and of values and the tokens; V0 of vLLM blocks alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.core.units import GIB, MIB
from kvplan.logs.facts import Fact, Start

V0_BLOCK = 16  # vLLM's V0: --block-size is 16 unless it is given (engine/arg_utils.py 0.6.3)
# Caches of llama.cpp by the prefix of their facts; the first is that of full length.
CACHES = ("", "swa_", "indexer_", "csa_", "hca_")
# SGLang's profile finds 0.02 to 0.09 GiB less free than the line of its weights says.
FREE_AT_PROFILE = GIB // 10
_PER_RANK = ("vllm", "sglang", "tensorrt-llm")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedPool:
    """``num_bytes`` of the rank that decides, within ``error_bytes`` of printed digits.

    ``concurrency`` is of requests of ``length`` tokens. None is not said.
    """

    num_bytes: int | None
    error_bytes: int
    tokens: int | None
    concurrency: float | None
    length: int | None
    how: str

    @property
    def sequence_bytes(self) -> float | None:
        """What a request of ``length`` tokens takes of the rank."""
        if not self.num_bytes or not self.concurrency:
            return None
        return self.num_bytes / self.concurrency


def pool_of(start: Start) -> LoggedPool:
    """The pool of the fullest rank."""
    num_bytes, error, how = _bytes(start)
    length = start.number("max_concurrency_tokens") or start.number("max_model_len")
    concurrency = start.least("max_concurrency")
    return LoggedPool(
        num_bytes=num_bytes,
        error_bytes=error,
        tokens=tokens_of(start),
        concurrency=_float(concurrency),
        length=int(length) if length and length > 0 else None,
        how=how,
    )


def tokens_of(start: Start) -> int | None:
    """Tokens as printed; of V0's blocks where it printed those."""
    said = start.least("kv_tokens")
    if said is not None and isinstance(said.value, int):
        return said.value
    blocks = start.least("num_gpu_blocks")
    if start.engine != "vllm" or blocks is None or start.number("kv_groups"):
        return None
    block = start.number("block_size") or V0_BLOCK
    return int(blocks.value) * int(block) if isinstance(blocks.value, int) else None


def _bytes(start: Start) -> tuple[int | None, int, str]:
    """Bytes, the error of their last digit, and the facts they are of."""
    exact = start.least("kv_in_use_bytes")
    if exact is not None and "bytes" in exact.text.partition("in use is ")[2]:
        return _whole(exact), 0, f"line {exact.line}"
    available = start.least("available_kv_bytes")
    if available is not None:
        error = GIB // 200
        return _as_estimated(start, _whole(available), error), error, f"line {available.line}"
    return _of_ranks(start) if start.engine in _PER_RANK else _of_process(start)


def _as_estimated(start: Start, printed: int, error: int) -> int:
    """The printed bytes, or more within their digits: what the engine says fits, fits in them.

    Where a request needs a fixed part this is less than the length takes, and moves nothing.
    """
    needed, length = start.number("needed_kv_bytes"), start.number("max_model_len")
    longest = start.number("estimated_max_model_len")
    if not needed or not length or not longest or not 0 < longest < length:
        return printed
    return min(max(printed, -int(-needed * longest // length)), printed + error)


def _of_ranks(start: Start) -> tuple[int | None, int, str]:
    """The least of the ranks: its layers of full length, and a window's pool beside them.

    SGLang's last line on windows is of both (SWAKVPool).
    """
    whole, windows = start.by_rank("kv_bytes"), start.by_rank("swa_kv_bytes")
    if not whole:
        return _left_by_fraction(start)
    sums = {
        rank: _whole(fact) + (0 if "SWAKVPool" in fact.text else _whole(windows.get(rank)))
        for rank, fact in whole.items()
    }
    rank = min(sums, key=sums.__getitem__)
    keys = ": keys and values" if start.last("k_bytes") else ""
    return sums[rank], (2 if keys else 1) * (GIB // 200), f"line {whole[rank].line}{keys}"


def fraction_leaves(start: Start) -> int | None:
    """SGLang: what is free after the weights, less the part of what was free that is kept so.

    model_executor/pool_configurator.py (0.5.12): after − before × (1 − fraction).
    """
    before, after = start.least("free_before_load_bytes"), start.least("free_after_load_bytes")
    share = start.number("mem_fraction_static")
    if before is None or after is None or not share:
        return None
    return _whole(after) - round(_whole(before) * (1 - share))


def _left_by_fraction(start: Start) -> tuple[int | None, int, str]:
    """The pool of a start that did not come to print one."""
    left, after = fraction_leaves(start), start.least("free_after_load_bytes")
    if left is None or after is None:
        return None, 0, ""
    how = f"line {after.line}, less what --mem-fraction-static keeps free"
    return left, FREE_AT_PROFILE, how


def _of_process(start: Start) -> tuple[int | None, int, str]:
    """Every cache of a process over all devices; of Ollama's own engine its devices' buffers."""
    caches = [found for kind in CACHES if (found := start.last(f"{kind}kv_bytes"))]
    if not caches:
        caches = [*start.by_rank("kv_buffer_bytes").values()]
    if not caches:
        return None, 0, ""
    lines = ", ".join(str(fact.line) for fact in caches)
    return sum(map(_whole, caches)), len(caches) * (MIB // 200), f"line {lines}"


def _whole(fact: Fact | None) -> int:
    return fact.value if fact is not None and isinstance(fact.value, int) else 0


def _float(fact: Fact | None) -> float | None:
    return float(fact.value) if fact and isinstance(fact.value, int | float) else None
