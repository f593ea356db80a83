"""What a log does not state and its figures tell: ranks that share each layer, or another start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from kvplan.core.errors import KvplanError
from kvplan.logs.facts import Start
from kvplan.logs.findings import Finding
from kvplan.logs.infer import Inferred
from kvplan.logs.pool import pool_of
from kvplan.planning.question import Question
from kvplan.planning.storage import FORMATS, cost_of, logged_cost

RANKS: Mapping[str, str] = {"vllm": "tensor_parallel_size", "sglang": "tp_size"}
TRIED = (2, 4, 8)
NEAR = 0.01
# A cost that is this many times another is of another start: of what no line states (a batch, a
# draft) windows and states hold less than that.
UNLIKE = 1.5


def as_cut(
    question: Question, start: Start, told: list[Inferred]
) -> tuple[Question, list[Inferred], list[str]]:
    """The question with the ranks that explain the logged cost, where none are given.

    ``told`` is what the storage format tells already: it goes first.
    """
    logged, name = logged_cost(start), RANKS.get(question.engine.name)
    if logged is None or name is None or told or question.node.gpus > 1:
        return question, [], []
    measured = logged.num_bytes / logged.tokens
    for ranks in TRIED:
        cut = replace(
            question,
            node=replace(question.node, gpus=ranks),
            asked=question.asked.with_flags(**{name: ranks}),
        )
        cost = cost_of(cut, logged)
        if cost is not None and abs(cost / measured - 1) <= logged.error + NEAR:
            flag = f"--{name.replace('_', '-')}"
            how = f"{measured:,.0f} B a token; of {ranks} ranks each has {cost:,.0f} B"
            said = f"Planned with {flag} {ranks}, which no line states and the log's figures tell."
            return cut, [Inferred(name, ranks, "", how)], [said]
    return question, [], []


def unlike(question: Question, start: Start, told: list[Inferred]) -> Iterator[Finding]:
    """A cost that the plan does not have, and that nothing explains."""
    logged = logged_cost(start) if question.engine.name in FORMATS else None
    cost = cost_of(question, logged) if logged is not None and not told else None
    if logged is None or not cost:
        return
    measured = logged.num_bytes / logged.tokens
    if 1 / UNLIKE < measured / cost < UNLIKE or _estimates_alike(question, start):
        return
    yield Finding(
        "plan_contradicts_log",
        "warning",
        f"The log's figures are {measured:,.0f} B a token on a card, and the plan's {cost:,.0f} B: "
        "the model, the layout over cards or the version is another, so that no change is "
        "suggested. Pass the lines with the arguments, or another --model.",
        {"logged_token_bytes": round(measured), "planned_token_bytes": round(cost)},
    )


def _estimates_alike(question: Question, start: Start) -> bool:
    """Whether the planned check comes to the length that the log's does.

    0.14 to 0.16 ask for the layers of all stages of a pipeline, of which a card holds some.
    """
    longest, flag = start.number("estimated_max_model_len"), question.engine.length_flag
    pool = pool_of(start).num_bytes
    if not longest or not pool or question.engine.name != "vllm":
        return False
    flags = {**question.asked.flags, **question.engine.flags.parse({flag: "auto"})}
    asked = replace(question.asked, flags=flags, pool_bytes=pool)
    try:
        plan = question.engine.plan(question.model, question.node, asked)
    except KvplanError:
        return False
    return plan.starts and abs((plan.pool.max_model_len or 0) / longest - 1) <= NEAR
