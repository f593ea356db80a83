"""After start-up: how much of the card traffic can still take, and whether that is left.

The profile run is a forecast. What it leaves out is taken beside the budget: graphs that were not
counted, the sampler where it skipped its filters, images while the second runner profiles none,
kernels that are loaded late. If less is left free than that, a busy hour ends in an out-of-memory
error although the engine started.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kvplan.core.launch import Launch
from kvplan.core.ledger import Ledger, Term
from kvplan.core.model import Model
from kvplan.core.units import GIB, format_bytes
from kvplan.core.version import Version
from kvplan.engines.vllm.memory.batch import batch_of, runner_two
from kvplan.engines.vllm.memory.encoder import PROFILED_BY_SECOND_SINCE, encoder_of
from kvplan.engines.vllm.memory.sampler import FLASHINFER_SINCE, LAZY_COPY_SINCE

# Kernels that load and workspaces that grow with the first real batches; up to 1.37 GiB were seen
# (gpt-oss-120b on eight cards without peer links).
LATE: Final = GIB // 4
LOGPROBS_BYTES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Spike:
    """``takes`` are the uses that start-up did not count; ``left_free`` is what there is for them
    once graphs are captured.
    """

    left_free: int
    takes: tuple[Term, ...]

    @property
    def total(self) -> int:
        """All of them at once."""
        return sum(term.num_bytes for term in self.takes)

    @property
    def risks(self) -> bool:
        """Whether they may not fit."""
        return self.total > self.left_free

    @property
    def sentence(self) -> str:
        """The risk, with its arithmetic, for a person."""
        left, needs = format_bytes(max(0, self.left_free)), format_bytes(self.total)
        if self.left_free < 0:
            return (
                f"Out of memory while graphs are captured: they take "
                f"{format_bytes(-self.left_free)} more than the fraction leaves free. Lower "
                "--gpu-memory-utilization, or pass --enforce-eager."
            )
        named = ", ".join(f"{term.name} {format_bytes(term.num_bytes)}" for term in self.takes)
        if self.risks:
            return (
                f"A spike can run out of memory: {needs} may still be taken ({named}) and {left} "
                "are left free. Lower --gpu-memory-utilization or --max-num-seqs."
            )
        return f"{left} stay free for a spike, which can take {needs} ({named})."


def spike(ledger: Ledger, model: Model, launch: Launch, version: Version) -> Spike:
    """What may still be taken once the engine serves.

    Args:
        ledger: the plan of a rank.
        model: what is served.
        launch: flags, given and defaulted.
        version: vLLM's.
    """
    free = sum(term.num_bytes for term in ledger if term.name == "left_free")
    takes = [_sampler(model, launch, version), _encoder(model, launch, version), _late()]
    return Spike(left_free=free, takes=tuple(term for term in takes if term.num_bytes))


def _late() -> Term:
    return _outside("late_kernels", LATE, "kernels and workspaces of the first real batches")


def _sampler(model: Model, launch: Launch, version: Version) -> Term:
    """What sampling takes beyond the profile run: logprobs, and filters that it skipped.

    v1/worker/gpu/model_runner.py, _dummy_sampler_run (0.25.1): "the sampler may skip top_k, top_p,
    and logprobs, using less GPU memory than what is possible during actual execution".
    """
    batch = batch_of(model, launch)
    logits = batch.sequences * batch.vocabulary
    each, said = LOGPROBS_BYTES, "float32 log-probabilities of every sequence"
    if runner_two(model, version, False, batch.experts is not None):
        each += 8 + (4 if version >= LAZY_COPY_SINCE else 0)
        said += ", and the filters that the profile run skips"
    elif version >= FLASHINFER_SINCE:
        said += " (sequences with seeds of their own are sampled by the fallback)"
    return _outside("sampler", logits * each, said)


def _encoder(model: Model, launch: Launch, version: Version) -> Term:
    """Images where nothing was profiled for them."""
    batch = batch_of(model, launch)
    second = runner_two(model, version, False, batch.experts is not None)
    if not second or version >= PROFILED_BY_SECOND_SINCE:
        return _outside("encoder", 0, "profiled")
    found = encoder_of(model, batch, version, second_runner=False, towers=True)
    return _outside("encoder", found.kept + found.peak, "images, which this version profiles not")


def _outside(name: str, num_bytes: int, source: str) -> Term:
    return Term(name=name, num_bytes=num_bytes, source=source, inside_budget=False)
