"""What kvplan says of the same server: from its model, its card and the flags that it tells.

    the pool        fit's tokens, for the engine and its flags
    reuse           tokens that were sent before, in whole blocks where the engine keeps blocks
    a decode step   the bound (bytes over bandwidth), and fit's estimate where there is one
    memory          the ledger's total, of a server on the CPU the file and its caches

A server of llama.cpp on this machine's CPU is read from its own file and held against the memory's
measured bandwidth; another needs a card, by NVML or ``--gpu``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from kvplan.core.errors import KvplanError
from kvplan.core.measured import Reads
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.measuring.phases import WARM
from kvplan.measuring.server import Server
from kvplan.measuring.summary import Run
from kvplan.planning.fit import FitAnswer, fit
from kvplan.planning.speed.measured import reads_of

BOUND, ESTIMATE, EXACT = "bound", "estimate", "exact"
KNOWN: Final = ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "ollama")


@dataclass(frozen=True, slots=True, kw_only=True)
class Predicted:
    """One figure that can be held against a run's; of the whole server where there is no run.

    ``kind`` says what it promises: a bound is not beaten, an exact figure is met, an estimate has
    an ``error``.
    """

    name: str
    run: int | None
    value: float
    unit: str
    kind: str
    source: str
    error: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The contract's row of ``predicted``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a server runs on: a card by name, or this machine's CPU at a measured bandwidth."""

    gpu: str | None = None
    gpus: int | None = None
    memory_bytes: int | None = None
    host_bandwidth: int | None = None


@dataclass(slots=True)
class Prediction:
    """Figures, why some are not there, and what a decode step reads of one rank where known."""

    figures: list[Predicted] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    reads: Reads | None = None
    card: str | None = None


def predict(
    server: Server,
    runs: Sequence[Run],
    card: Card,
    *,
    model: str | None = None,
    flags: Mapping[str, Any] | None = None,
    offline: bool = False,
) -> Prediction:
    """What is known of a server.

    ``model`` is where kvplan finds the model; default: what the server says of it.
    """
    found = Prediction(list(_reuse(server, runs)))
    source = model or server.source or server.model
    is_file = Path(source).suffix == ".gguf"
    if is_file and not Path(source).is_file():
        found.said.append(f"{source} is not on this machine: pass --predict-from MODEL to predict.")
    elif not is_file and card.gpu is None:
        found.said.append("Nothing is predicted of memory and speed: pass --gpu NAME.")
    else:
        try:
            if card.host_bandwidth is not None and is_file:
                _on_host(found, Path(source), server, runs, card, flags or {})
            else:
                _on_cards(found, source, server, runs, card, flags or {}, offline)
        except KvplanError as error:
            found.said.append(f"Nothing is predicted of memory and speed: {error}")
    return found


def _reuse(server: Server, runs: Sequence[Run]) -> Iterator[Predicted]:
    """Prompt tokens that the cache has: whole blocks of what was sent before."""
    block = server.block_size or 1
    for index, run in enumerate(runs):
        each = run.known_tokens // max(1, run.requests - run.failed)
        kept = each // block * block * (run.requests - run.failed)
        if run.prefix == WARM and run.pressure:
            yield Predicted(
                name="cached_tokens", run=index, value=0, unit="tokens", kind=ESTIMATE,
                source="the least recently used goes first: each is gone before it comes again",
            )  # fmt: skip
        elif run.prefix == WARM:
            how = f"whole blocks of {block}" if block > 1 else "token by token"
            value = kept if run.reuse else 0
            yield Predicted(
                name="cached_tokens", run=index, value=value, unit="tokens", kind=EXACT,
                source=f"tokens that were sent before, {how}" if run.reuse else "reuse is off",
            )  # fmt: skip


def _on_host(
    found: Prediction,
    weights: Path,
    server: Server,
    runs: Sequence[Run],
    card: Card,
    flags: Mapping[str, Any],
) -> None:
    """llama.cpp on this machine's CPU."""
    build = (
        server.version
        if server.version and server.version.lstrip("b").split("-")[0] > "0"
        else None
    )
    asked = {**server.flags, **flags, "n_gpu_layers": 0}
    asked.pop("threads", None)
    planned = fit(
        weights,
        engine="llama.cpp",
        engine_version=build.split("-")[0] if build else None,
        gpu_memory=card.memory_bytes or 1 << 40,
        **asked,
    )
    assert isinstance(planned.plan, LlamaPlan)
    found.reads = reads_of(planned.plan)
    layout = planned.plan.layout
    if any(cache.name != "attention" for cache in layout.caches.announced()):
        found.figures = [_if_it_can_go_back(one) for one in found.figures]
    held = layout.caches.num_bytes + layout.host.weights + layout.on_host_alone().num_bytes
    found.figures.append(
        Predicted(
            name="memory_bytes", run=None, value=held, unit="bytes", kind=ESTIMATE,
            source="weights, caches and buffers of llama.cpp's plan", error=0.25,
        )
    )  # fmt: skip
    rate = card.host_bandwidth
    if found.reads is None or not rate:
        return
    said = f"bytes of a step at {rate / 1e9:.1f} GB/s, what the server's cores move of this memory"
    for index, run in enumerate(runs):
        if run.concurrency is not None and run.mean_context_tokens:
            seen = run.concurrency * run.mean_context_tokens * found.reads.token_bytes
            seconds = (found.reads.weights_bytes + seen) / rate
            found.figures.append(
                Predicted(
                    name="decode_step_s",
                    run=index,
                    value=seconds,
                    unit="s",
                    kind=BOUND,
                    source=said,
                )
            )


def _if_it_can_go_back(one: Predicted) -> Predicted:
    """Windows and states forget what was before: llama.cpp restores a checkpoint, where it has one.

    tools/server/server-context.cpp, b11549: without one at or before the place where prompts part
    the whole prompt is computed again.
    """
    if one.name != "cached_tokens" or not one.value:
        return one
    return replace(
        one, kind=ESTIMATE, source=f"{one.source}, if a checkpoint of its windows is there"
    )


def _on_cards(
    found: Prediction,
    source: str,
    server: Server,
    runs: Sequence[Run],
    card: Card,
    flags: Mapping[str, Any],
    offline: bool,
) -> None:
    """Any engine that fit knows, on the card that is named."""
    engine = server.engine if server.engine in KNOWN else "none"
    common: dict[str, Any] = {
        "gpu": card.gpu,
        "gpus": card.gpus,
        "engine": engine,
        "offline": offline,
        **_spelled(server, engine),
        **flags,
    }
    if engine != "none":
        common["engine_version"] = server.version
    planned = fit(source, **common)
    plan = planned.plan
    found.reads, found.card = reads_of(plan), plan.node.device.name
    if plan.pool.kv_tokens is not None:
        found.figures.append(
            Predicted(
                name="pool_tokens", run=None, value=plan.pool.kv_tokens, unit="tokens",
                kind=ESTIMATE, source=f"fit: {plan.engine} {plan.version or ''}", error=0.05,
            )
        )  # fmt: skip
    found.figures.append(
        Predicted(
            name="memory_bytes", run=None, value=plan.ledger.total, unit="bytes", kind=ESTIMATE,
            source="fit: the ledger of one card", error=0.05,
        )
    )  # fmt: skip
    for index, run in enumerate(runs):
        if run.concurrency is not None and run.mean_context_tokens:
            at = fit(
                source,
                context=round(run.mean_context_tokens),
                concurrency=run.concurrency,
                **common,
            )
            found.figures += _steps(at, index)


def _steps(at: FitAnswer, index: int) -> Iterator[Predicted]:
    """Bound and estimate of a decode step."""
    speed = at.to_dict()["speed"]
    if not speed:
        return
    yield Predicted(
        name="decode_step_s", run=index, value=speed["decode_step_floor_s"], unit="s", kind=BOUND,
        source="bytes of a step over the card's bandwidth",
    )  # fmt: skip
    if speed["estimate"]:
        yield Predicted(
            name="decode_step_s", run=index, value=speed["estimate"]["decode_step_s"], unit="s",
            kind=ESTIMATE, source="fit's estimate", error=speed["estimate"]["error"],
        )  # fmt: skip


def _spelled(server: Server, engine: str) -> dict[str, Any]:
    """The server's flags as fit takes them; what its pool's line says of blocks is left out."""
    if engine == "none":
        return {}
    return {key: value for key, value in server.flags.items() if key != "block_size"}
