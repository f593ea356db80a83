"""The storage format of the cache that explains a logged pool, and what is beside it.

Each format that the engine has is planned on the logged bytes; the one whose tokens are the logged
ones within the printed digits is it. None is where something hidden takes room.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from kvplan.core.errors import KvplanError
from kvplan.core.units import GIB, format_bytes
from kvplan.engines.base import EnginePlan
from kvplan.logs.facts import Start
from kvplan.logs.infer import Inferred, divided, usable_tokens
from kvplan.logs.pool import LoggedPool, pool_of
from kvplan.planning.question import Question

FORMATS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "vllm": (
        "--kv-cache-dtype",
        ("auto", "bfloat16", "fp8", "nvfp4", "int8_per_token_head", "turboquant_4bit_nc"),
    ),
    "sglang": ("--kv-cache-dtype", ("auto", "fp8_e4m3", "fp4_e2m1")),
    "tensorrt-llm": ("--kv-cache-dtype", ("auto", "fp8", "nvfp4")),
}
NEAR = 0.003  # of the tokens, beside what the pool's digits leave
MOST_HIDDEN = 8  # layers of a draft, or of padding
WHOLE_LAYERS = 0.05


class Logged(NamedTuple):
    """What a log says of the cost: bytes for tokens, and how far its digits may be off."""

    num_bytes: int
    tokens: int
    error: float


def explain_storage(question: Question, start: Start) -> Iterator[Inferred]:
    """The format that explains the pool; else the layers that are kept beside the model's."""
    logged = logged_cost(start)
    if logged is None or question.engine.name not in FORMATS:
        return
    flag, names = FORMATS[question.engine.name]
    own = question.asked.flags.get(flag, "auto")
    costs: dict[str, float] = {}
    for name in dict.fromkeys((own, *names)):
        cost = _cost(question, flag, name, logged)
        if cost is not None:
            costs.setdefault(name, cost)
    measured = logged.num_bytes / logged.tokens
    near = min(costs, key=lambda name: abs(costs[name] / measured - 1), default=None)
    if near is None:
        return
    planned = ", ".join(
        f"{name} is {costs[name]:,.0f} B a token"
        for name in dict.fromkeys((near, own))
        if name in costs
    )
    how = f"{format_bytes(logged.num_bytes)} for {logged.tokens:,} tokens; {planned}"
    if abs(costs[near] / measured - 1) <= logged.error + NEAR:
        yield Inferred("kv_format", near if near != "auto" else _own_type(start), "", how)
        yield from _copies(question)
    elif own in costs:
        yield from _hidden(question, measured / costs[own], how)


def logged_cost(start: Start) -> Logged | None:
    """The cost as an error states it, else as the pool does."""
    needed, length = start.number("needed_kv_bytes"), start.number("max_model_len")
    pool = pool_of(start)
    if needed and length:
        return Logged(int(needed), int(length), _digits(GIB // 200, int(needed)))
    tokens = usable_tokens(pool)
    if not pool.num_bytes or pool.num_bytes < 0 or not tokens:
        return None
    return Logged(pool.num_bytes, tokens, _digits(pool.error_bytes, pool.num_bytes) + _steps(pool))


def _digits(error: int, value: int) -> float:
    return error / value if value > 0 else 1.0


def _steps(pool: LoggedPool) -> float:
    """What two decimals of a concurrency leave open."""
    counted = pool.concurrency and (divided(pool) or not pool.tokens)
    return 0.005 / pool.concurrency if counted and pool.concurrency else 0.0


def _cost(question: Question, flag: str, name: str, logged: Logged) -> float | None:
    """What a token takes in a format."""
    asked = question.asked
    flags = {key: value for key, value in asked.flags.items() if key != flag}
    if name != "auto":
        flags[flag] = name
    return cost_of(replace(question, asked=replace(asked, flags=flags)), logged)


def cost_of(question: Question, logged: Logged) -> float | None:
    """Bytes of a token at the logged length as the plan counts them, None where it refuses."""
    try:
        plan = question.engine.plan(
            question.model, question.node, replace(question.asked, pool_bytes=logged.num_bytes)
        )
    except KvplanError:
        return None
    return _token_bytes(plan, question.asked.context)


def _token_bytes(plan: EnginePlan, length: int) -> float | None:
    """As the engine prints it: the pool over the requests of a length, where it prints those."""
    pool = plan.pool
    if pool.max_concurrency and pool.max_model_len == length and pool.num_blocks:
        whole = pool.num_blocks * (pool.bytes_per_block or 0) or pool.num_bytes
        return whole / pool.max_concurrency / length
    own = plan.sequence_bytes(length)
    return own / length if own > 0 else None


def as_stored(question: Question, found: list[Inferred]) -> tuple[Question, list[str]]:
    """The question with the format that was found, where it is another than was asked for."""
    if question.engine.name not in FORMATS:
        return question, []
    flag, names = FORMATS[question.engine.name]
    stored = next((str(row.value) for row in found if row.name == "kv_format"), None)
    if stored not in names or stored in ("auto", question.asked.flags.get(flag)):
        return question, []
    asked = replace(question.asked, flags={**question.asked.flags, flag: stored})
    said = f"Planned with {flag} {stored}, which no line states and the log's figures tell."
    return replace(question, asked=asked), [said]


def _own_type(start: Start) -> str:
    """The model's own type."""
    dtype = start.last("dtype")
    return str(dtype.value) if dtype is not None and dtype.value != "auto" else "16 bits (auto)"


def _copies(question: Question) -> Iterator[Inferred]:
    """KV heads that several ranks keep, where there are more ranks than heads."""
    ranks = next(
        (
            v
            for k, v in question.asked.flags.items()
            if k in ("--tensor-parallel-size", "--tp-size")
        ),
        1,
    )
    heads = {layer.heads for layer, _ in question.model.layers() if layer.heads}
    if heads and isinstance(ranks, int) and ranks > max(heads):
        copies = ranks // max(heads)
        how = f"{ranks} ranks share {max(heads)} KV heads: each head is kept {copies} times"
        yield Inferred("kv_head_copies", copies, "", how)


def _hidden(question: Question, ratio: float, how: str) -> Iterator[Inferred]:
    """Layers beside the model's own, where the cost is a whole number of them more."""
    layers = sum(count for _, count in question.model.layers())
    more = ratio * layers - layers
    if 0 < round(more) <= MOST_HIDDEN and abs(more - round(more)) < WHOLE_LAYERS:
        said = f"{how}: {ratio:.4f} × the model's {layers} layers, as a draft's or of padding"
        yield Inferred("hidden_layers", round(more), "", said)
