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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from kvplan.core.errors import KvplanError
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.measuring.phases import WARM
from kvplan.measuring.server import Server
from kvplan.measuring.summary import Run
from kvplan.planning.fit import FitAnswer, fit

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


def predict(
    server: Server,
    runs: Sequence[Run],
    card: Card,
    *,
    model: str | None = None,
    flags: Mapping[str, Any] | None = None,
    offline: bool = False,
) -> tuple[list[Predicted], list[str]]:
    """Figures, and why some are not there.

    ``model`` is where kvplan finds the model; default: what the server says of it.
    """
    found, said = list(_reuse(server, runs)), []
    source = model or server.source or server.model
    local = Path(source).suffix == ".gguf"
    if local and not Path(source).is_file():
        said.append(f"The model's file {source} is not on this machine: pass --predict-from MODEL.")
        return found, said
    if not local and card.gpu is None:
        said.append("Nothing is predicted of memory and speed: pass --gpu NAME.")
        return found, said
    try:
        if card.host_bandwidth is not None and local:
            found += _on_host(Path(source), server, runs, card, flags or {})
        else:
            found += _on_cards(source, server, runs, card, flags or {}, offline)
    except KvplanError as error:
        said.append(f"Nothing is predicted of memory and speed: {error}")
    return found, said


def _reuse(server: Server, runs: Sequence[Run]) -> Iterator[Predicted]:
    """Prompt tokens that the cache has: whole blocks of what was sent before."""
    block = server.block_size or 1
    for index, run in enumerate(runs):
        each = run.known_tokens // max(1, run.requests - run.failed)
        kept = each // block * block * (run.requests - run.failed)
        if run.prefix == WARM and not run.pressure:
            how = f"whole blocks of {block}" if block > 1 else "token by token"
            value = kept if run.reuse else 0
            yield Predicted(
                name="cached_tokens", run=index, value=value, unit="tokens", kind=EXACT,
                source=f"tokens that were sent before, {how}" if run.reuse else "reuse is off",
            )  # fmt: skip


def _on_host(
    weights: Path, server: Server, runs: Sequence[Run], card: Card, flags: Mapping[str, Any]
) -> Iterator[Predicted]:
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
    layout = planned.plan.layout
    held = layout.caches.num_bytes + layout.host.weights + layout.on_host_alone().num_bytes
    yield Predicted(
        name="memory_bytes", run=None, value=held, unit="bytes", kind=ESTIMATE,
        source="weights, caches and buffers of llama.cpp's plan", error=0.25,
    )  # fmt: skip
    for index, run in enumerate(runs):
        if run.concurrency is None or not run.mean_context_tokens:
            continue
        speed = fit(
            weights,
            engine="none",
            gpu_memory=card.memory_bytes or 1 << 40,
            bandwidth=card.host_bandwidth,
            context=round(run.mean_context_tokens),
            concurrency=run.concurrency,
            kv_dtype=flags.get("cache_type_k", "f16"),
        ).speed
        if speed is not None:
            yield Predicted(
                name="decode_step_s", run=index, value=speed.step_s, unit="s", kind=BOUND,
                source=f"bytes of a step at {(card.host_bandwidth or 0) / 1e9:.1f} GB/s, what one "
                "thread reads of this machine's memory",
            )  # fmt: skip


def _on_cards(
    source: str,
    server: Server,
    runs: Sequence[Run],
    card: Card,
    flags: Mapping[str, Any],
    offline: bool,
) -> Iterator[Predicted]:
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
    if planned.plan.pool.kv_tokens is not None:
        said = f"fit: {planned.plan.engine} {planned.plan.version or ''}".strip()
        yield Predicted(
            name="pool_tokens", run=None, value=planned.plan.pool.kv_tokens, unit="tokens",
            kind=ESTIMATE, source=said, error=0.05,
        )  # fmt: skip
    yield Predicted(
        name="memory_bytes", run=None, value=planned.plan.ledger.total, unit="bytes", kind=ESTIMATE,
        source="fit: the ledger of one card", error=0.05,
    )  # fmt: skip
    for index, run in enumerate(runs):
        if run.concurrency is not None and run.mean_context_tokens:
            at = fit(
                source,
                context=round(run.mean_context_tokens),
                concurrency=run.concurrency,
                **common,
            )
            yield from _steps(at, index)


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
