"""``explain``: what an engine printed at its start, accounted for and held against a prediction.

log ─► facts ─► inferred ─► findings          from the log alone
   └─► question ─► fit ─► differences, suggestions       where it names its model and card
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from kvplan.core.errors import BadFile, KvplanError
from kvplan.core.ledger import Ledger
from kvplan.core.units import format_gib
from kvplan.engines.base import EnginePlan
from kvplan.logs.compare import Comparison, Difference, compare_starts, cost_of_both, ledgers_apart
from kvplan.logs.facts import Log, Start
from kvplan.logs.failures import failures_of
from kvplan.logs.findings import Finding, find
from kvplan.logs.infer import Inferred, divided, infer
from kvplan.logs.ledger import ledger_of
from kvplan.logs.metrics.findings import find_scrape, infer_scrape
from kvplan.logs.metrics.source import fetched, is_address
from kvplan.logs.pool import pool_of
from kvplan.logs.read import read_log
from kvplan.logs.source import Source
from kvplan.planning.answer import Answer
from kvplan.planning.fit import FitAnswer
from kvplan.planning.logged import Asking, question_of
from kvplan.planning.question import Question
from kvplan.planning.started_as import OF_A_BUDGET, Base
from kvplan.planning.storage import as_stored, explain_storage
from kvplan.planning.suggestions import Advice, Suggestion, advise
from kvplan.planning.unlogged import as_cut, unlike
from kvplan.readers.open_model import ModelSource

# Between the shares of a rank's own tokens that another rank's card can bring them down to.
LEAST_OF_A_RANK, SAME_RANK = 0.5, 0.995
# What vLLM prints when all memory is taken; SGLang and the others print their pool at that point.
READY = ("graph_capture_s", "startup_s", "serving", "kv_in_use_bytes", "running_requests")
LOADING = 0.03  # of the weights: buffers and rounding that no checkpoint tells


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainAnswer(Answer):
    """A start's facts, what follows of them, and the prediction beside them where there is one."""

    verb: ClassVar[str] = "explain"

    log: Log
    start: Start
    ledger: Ledger
    inferred: tuple[Inferred, ...]
    findings: tuple[Finding, ...]
    predicted: FitAnswer | None
    differences: tuple[Difference, ...]
    suggestions: tuple[Suggestion, ...]
    compared: Comparison | None = None
    warnings: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the start ended in an error."""
        return bool(self.start.failures)

    @property
    def ended(self) -> str:
        """``failed``, ``started``, or nothing where a vLLM log stops before either is said."""
        if self.failed:
            return "failed"
        ready = self.start.engine != "vllm" or any(map(self.start.last, READY))
        return "started" if ready else ""

    def body(self) -> dict[str, Any]:
        """The contract's keys of ``explain``."""
        return {
            "engine": {"name": self.start.engine, "version": self.start.version},
            "source": self.log.source,
            "starts": [
                {
                    "engine": start.engine,
                    "version": start.version,
                    "line": start.first_line,
                    "facts": len(start.facts),
                    "explained": start is self.start,
                }
                for start in self.log.starts
            ],
            "facts": [fact.to_dict() for fact in self.start.facts],
            "inferred": [row.to_dict() for row in self.inferred],
            "ledger": [term.to_dict() for term in self.ledger],
            "predicted": self.predicted.to_dict() if self.predicted else None,
            "differences": [row.to_dict() for row in self.differences],
            "findings": [finding.to_dict() for finding in self.findings],
            "suggestions": [row.to_dict() for row in self.suggestions],
            "compared": self.compared.to_dict() if self.compared else None,
        }


def explain(
    log: Source,
    second: Source | None = None,
    *,
    model: ModelSource | None = None,
    gpu: str | None = None,
    set: Mapping[str, Any] | None = None,
    assume: str = "",
    offline: bool = False,
) -> ExplainAnswer:
    """What a start-up log says: its facts, what follows, a prediction beside it, what to change.

    Args:
        log: a file, ``-`` for standard input, bytes, or the text itself (several lines); a scrape
            of /metrics, or the address of a server that exports it.
        second: a later log to hold against the first; it is the one that is explained.
        model: the model, where the log does not name it.
        gpu: the card, where the log does not name it.
        set: config keys to replace.
        assume: ``full`` sizes a config of an unknown type as full attention.
        offline: never ask the hub.

    Raises:
        BadFile: a file that is no text, or in which no engine's lines are recognised.
        BadQuestion: a model or a card that is not known.
        SourceUnreachable: a file that cannot be read.
    """
    asking = Asking(model=model, gpu=gpu, set=set, assume=assume, offline=offline)
    read, first = _read(log)
    if second is None:
        return explain_start(read, first, asking)
    later, last = _read(second)
    found = explain_start(later, last, asking)
    return replace(found, compared=compare_starts(first, last))


def _read(source: Source) -> tuple[Log, Start]:
    """A log and the last start in it.

    Raises:
        BadFile: there is none.
    """
    log = read_log(fetched(str(source)) if is_address(source) else source)
    if is_address(source):
        log = replace(log, source=str(source))
    if log.start is None:
        raise BadFile(
            f"In {log.lines:,} lines of {log.source} there is nothing that an engine prints when "
            "it starts.",
            "Pass the part from the engine's start on, with its INFO lines.",
        )
    return log, log.start


def explain_start(log: Log, start: Start, asking: Asking) -> ExplainAnswer:
    """One start of a log."""
    question, said = question_of(start, asking)
    answer = ExplainAnswer(
        log=log,
        start=start,
        ledger=ledger_of(start),
        inferred=(*infer(start), *infer_scrape(start), *_of_earlier(log, start)),
        findings=(*failures_of(start), *find(start), *find_scrape(start)),
        predicted=None,
        differences=(),
        suggestions=(),
        warnings=(*log.notes, *_several(log, start), *said),
    )
    if question is None:
        return answer
    try:
        return _beside(answer, question, start)
    except KvplanError as error:
        told = f"No prediction beside the log: {error.message}"
        return replace(answer, warnings=(*answer.warnings, told))


def _beside(answer: ExplainAnswer, question: Question, start: Start) -> ExplainAnswer:
    """The answer with a prediction beside it, in the storage format that the log's figures tell."""
    storage = list(explain_storage(question, start))
    question, said = as_stored(question, storage)
    question, ranks, cut = as_cut(question, start, storage)
    contradicted = [*unlike(question, start, [*storage, *ranks])]
    base = Base.of(question, start)
    predicted = FitAnswer(question, base.plan)
    advice = Advice() if contradicted else advise(base, start)
    figured = [] if base.figured is None else [base.figured]
    return replace(
        answer,
        inferred=(*answer.inferred, *figured, *_needed(base, start), *storage, *ranks),
        findings=(
            *answer.findings,
            *contradicted,
            *_of_another_rank(base, start, storage),
            *advice.not_enough,
        ),
        predicted=predicted,
        differences=tuple(_differences(answer.ledger, base, start)),
        suggestions=tuple(advice.suggestions),
        warnings=tuple(dict.fromkeys((*answer.warnings, *predicted.warnings, *said, *cut))),
    )


def _of_another_rank(base: Base, start: Start, storage: list[Inferred]) -> Iterator[Finding]:
    """A rank that prints a larger pool than the tokens of all take is not the one that decides."""
    pool, layout = pool_of(start), base.question.node.gpus
    if layout < 2 or storage or not pool.num_bytes or not pool.tokens or pool.num_bytes < 0:
        return
    planned = base.as_logged()
    alone = planned is not None and len(planned.pool.groups) < 2
    own = planned.pool.kv_tokens if planned is not None and alone else None
    if not own or not LEAST_OF_A_RANK * own < pool.tokens < SAME_RANK * own:
        return
    other = round(pool.num_bytes * pool.tokens / own)
    yield Finding(
        "another_rank_decides",
        "warning",
        f"{format_gib(pool.num_bytes)} would hold {own:,} tokens, and the pool has "
        f"{pool.tokens:,}: another rank has {format_gib(other)} and decides. See what else its "
        "card holds.",
        {"tokens_of_this_rank": own, "kv_tokens": pool.tokens, "other_rank_bytes": other},
    )


def _needed(base: Base, start: Start) -> Iterator[Inferred]:
    """What a request of the longest length takes, where it failed and no line says it."""
    length = start.number("max_model_len")
    if base.failed and length and not start.number("needed_kv_bytes"):
        own = base.plan.sequence_bytes(int(length))
        yield Inferred("needed_kv_bytes", own, "bytes", f"{int(length):,} tokens, planned")


def _several(log: Log, start: Start) -> list[str]:
    if len(log.starts) < 2:
        return []
    lines = ", ".join(f"{other.first_line:,}" for other in log.starts[-8:])
    line = f"the one at line {start.first_line:,} is explained"
    return [f"The log has {len(log.starts)} starts, at lines {lines}: {line}."]


def _of_earlier(log: Log, start: Start) -> list[Inferred]:
    """The cost of a sequence from an earlier start with another length."""
    for other in reversed(log.starts):
        if other is not start and other.engine == start.engine:
            found = list(cost_of_both(other, start))
            if found:
                return found
    return []


def _differences(logged: Ledger, base: Base, start: Start) -> Iterator[Difference]:
    """Terms against the plan as asked; tokens against the plan on the logged pool."""
    of_budget = start.engine in OF_A_BUDGET
    for row in ledgers_apart(logged, base.plan.ledger, of_budget=of_budget):
        if row.name == "activation_peak" and not row.why:
            yield _of_batch(row, base)
        elif row.name == "weights" and not row.why and row.ratio:
            yield replace(row, why=_of_weights(row.ratio))
        else:
            yield row
    if base.figured is not None:
        planned = base.plan.ledger.pool_bytes
        why = "the logged figures, by the planned size of a block"
        yield Difference(name="kv_pool", logged=int(base.figured.value), predicted=planned, why=why)
        return
    pooled = base.as_logged() if base.pool_bytes else None
    given = "as asked" if pooled is None else "with the logged pool"
    pooled = base.plan if pooled is None else pooled
    pool = pool_of(start)
    figures: tuple[tuple[str, float | None, float | None], ...] = (
        ("kv_tokens", pool.tokens, pooled.pool.kv_tokens),
        ("num_gpu_blocks", start.number("num_gpu_blocks"), pooled.pool.num_blocks),
        ("max_concurrency", pool.concurrency, pooled.pool.max_concurrency),
    )
    for name, said, own in figures:
        if said is not None and own is not None:
            why = f"{given}: {_why(name, said, own, pooled, start)}"
            yield Difference(name=name, logged=said, predicted=own, why=why)


def _of_weights(ratio: float) -> str:
    """Weights that are not the planned ones: what loading leaves, or another checkpoint."""
    if abs(ratio - 1) < LOADING:
        return f"{ratio - 1:+.1%}: what loading leaves beside the tensors"
    return f"{ratio:.2f} × the planned: another quantisation, or a draft's beside them"


def _of_batch(row: Difference, base: Base) -> Difference:
    """Activations follow the batch: where the log does not state it, what was assumed."""
    setting = base.plan.launch.settings.get("--max-num-batched-tokens")
    if setting is None or setting.source == "flag":
        return row
    why = f"--max-num-batched-tokens is not logged: {setting.value:,}, the {setting.source}"
    return replace(row, why=why)


def _why(name: str, said: int | float, planned: int | float, plan: EnginePlan, start: Start) -> str:
    """Why a figure of the pool differs, as far as a rule tells."""
    pool = pool_of(start)
    steps = pool.error_bytes / pool.num_bytes if pool.num_bytes and pool.num_bytes > 0 else 0.0
    blocks = 1 / plan.pool.num_blocks if plan.pool.num_blocks else 0.0
    digits = 0.005 / planned if name == "max_concurrency" and planned else 0.0
    if abs(said - planned) <= (steps + blocks + digits) * planned + 1e-9:
        return "equal within the printed digits"
    if name == "kv_tokens" and divided(pool):
        return "blocks divided by the groups of layers, as this version prints them"
    batch = plan.launch.settings.get("--max-num-batched-tokens")
    if len(plan.pool.groups) > 1 and batch is not None and batch.source != "flag":
        return (
            "windows and states hold a batch beside the window: --max-num-batched-tokens, "
            f"--max-num-seqs or a draft that is not logged ({batch.value:,} are assumed)"
        )
    return "another storage format, hidden layers, or another version's rule"
