"""``lab``: each cache on a real model: bytes, times, quality; a batch; a shortened prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kvplan.core.errors import BadValue
from kvplan.lab.answer import LabAnswer
from kvplan.lab.figures import Compiled, Found, Lost, Perplexity, Row, Shared
from kvplan.lab.kinds import KINDS, Kind, Sizes
from kvplan.lab.question import Question, ask

if TYPE_CHECKING:
    from kvplan.lab.engine import Generated
    from kvplan.lab.loading import Loaded

Progress = Callable[[str, int, int], None]
T = TypeVar("T")

DEPTHS: Final = (0.1, 0.5, 0.9)
WARM_UP: Final = 8  # tokens of a first pass that nobody times


def lab(
    model: str | Path | None = None,
    *,
    caches: str | Sequence[str] = "",
    prompt: int | str = 512,
    output: int | str = 24,
    budget: int | str = 128,
    sinks: int = 4,
    group: int = 32,
    residual: int = 32,
    block_size: int = 16,
    text: str | None = None,
    passages: int = 3,
    passage: int | str = 512,
    needles: int | str | Sequence[int | str] = "192,384",
    requests: int = 4,
    compile: float = 0,
    device: str | None = None,
    dtype: str | None = None,
    threads: int | None = None,
    offline: bool = False,
    progress: Progress | None = None,
) -> LabAnswer:
    """Run caches on a real model and measure what each holds, costs and does to the answers.

    Args:
        model: a causal model by hub name, folder or GGUF file; default: SmolLM2-135M.
        caches: names, as ``full,int4``; default: the usual ones.
        prompt: tokens of the prompt.
        output: tokens of the answer.
        budget: tokens that an evicting cache keeps.
        sinks: first tokens that a sliding window keeps, of its budget.
        group: elements that share a scale.
        residual: recent tokens that a quantised cache keeps whole.
        block_size: tokens of a page.
        text: a file to read from; default: Shakespeare's plays.
        passages: passages that perplexity is measured on, each from a seed of its own; 0 for none.
        passage: tokens of each.
        needles: lengths of the texts that facts are hidden in, as ``192,384``; empty for none.
        requests: requests of the batch; 1 for none.
        compile: seconds that torch.compile may take; 0 leaves it out.
        device: ``cpu`` or ``cuda``; default: a GPU where there is one.
        dtype: ``f32``, ``bf16`` or ``f16``; default: f32 on a CPU, bf16 on a GPU.
        threads: compute threads; default: one on a small machine.
        offline: never download.
        progress: told (what, done, in all) on the way.

    Returns:
        A ``LabAnswer``.

    Raises:
        BadQuestion: a cache, model or number that cannot be read, or no torch.
        SourceUnreachable: weights or text that are not there.
    """
    question = ask(
        caches=caches,
        prompt=prompt,
        output=output,
        budget=budget,
        sinks=sinks,
        group=group,
        residual=residual,
        block_size=block_size,
        passages=passages,
        passage=passage,
        needles=needles,
        requests=requests,
        compile_s=compile,
    )
    from kvplan.lab.extras import load_torch

    load_torch(threads)
    from kvplan.lab.loading import load
    from kvplan.lab.texts import read_text

    if progress:
        progress("loading the model", 0, 1)
    words = read_text(text, offline=offline)
    source = None if model is None else str(model)
    loaded = load(source, device=device, dtype=dtype, threads=threads, offline=offline)
    most = loaded.described.max_context_tokens
    if most and question.longest > most:
        raise BadValue(f"{question.longest:,} tokens are asked for; the model takes {most:,}.")
    return _Lab(loaded, question, words, progress).answer()


class _Lab:
    """One run: a model, a question, and what is found on the way."""

    def __init__(
        self, loaded: Loaded, question: Question, text: str, progress: Progress | None
    ) -> None:
        from kvplan.lab.needles import needles
        from kvplan.lab.texts import passages

        self.loaded, self.question = loaded, question
        self.progress = progress or (lambda what, done, total: None)
        self.left_out: dict[str, list[str]] = {}  # what, by why
        self.tokens = passages(loaded, text, question.text_tokens, 1)[0]
        self.passages = passages(loaded, text, question.passage, question.passages)
        self.needles = needles(loaded, self.tokens, question.needle_lengths, DEPTHS)

    def answer(self) -> LabAnswer:
        """Every cache, and what else is asked."""
        question, loaded = self.question, self.loaded
        rows = self._rows()
        return LabAnswer(
            model=loaded.name,
            architecture=loaded.described.architecture or loaded.described.model_type,
            dtype=loaded.dtype,
            device=loaded.device,
            threads=loaded.threads,
            budget=question.sizes.budget,
            passages=question.passages,
            passage_tokens=question.passage,
            rows=rows,
            batch=self._batch(),
            lost=self._lost() or (),
            compiled=self._compiled(),
            notes=(*loaded.described.warnings, *self._left_out()),
        )

    def _rows(self) -> tuple[Row, ...]:
        """A row a cache; the full one is run first, whether it is asked for or not."""
        from kvplan.lab.engine import step

        step(self.loaded, self.tokens[:WARM_UP], None)
        asked = self.question.kinds
        kinds = list(dict.fromkeys((KINDS["full"], *asked)))
        rows: dict[str, Row] = {}
        reference: Generated | None = None
        for place, kind in enumerate(kinds):
            self.progress(kind.name, place, len(kinds))
            if reference is None:
                generated = reference = self._generated(kind)  # a model that does not run says so
            else:
                found = self._or_left_out(kind.name, partial(self._generated, kind))
                if found is None:
                    continue
                generated = found
            read, facts = self._quality(kind)
            rows[kind.name] = replace(
                self._row(kind, generated, reference),
                perplexity=read,
                full_perplexity=rows["full"].perplexity if rows else read,
                found=facts,
            )
        return tuple(rows[kind.name] for kind in asked if kind.name in rows)

    def _or_left_out(self, what: str, run: Callable[[], T]) -> T | None:
        """What it gives, or None and a warning where it cannot be for this model."""
        try:
            return run()
        except BadValue as error:
            self.left_out.setdefault(str(error), []).append(what)
            return None

    def _left_out(self) -> list[str]:
        """A sentence a reason."""
        return [
            f"{', '.join(names)} {'were' if len(names) > 1 else 'was'} left out: {why}"
            for why, names in self.left_out.items()
        ]

    def _sizes(self, tokens: int) -> Sizes:
        return replace(self.question.sizes, tokens=tokens)

    @property
    def _all_sizes(self) -> Sizes:
        """The last token of an answer is never fed back."""
        return self._sizes(self.question.prompt + self.question.output - 1)

    def _generated(self, kind: Kind) -> Generated:
        from kvplan.lab.engine import generate

        question = self.question
        self._predicted(kind)  # refuses what the cache does not hold, before anything runs
        cache = kind.make(self.loaded.config, self._all_sizes)
        prompt = self.tokens[: question.prompt]
        return generate(self.loaded, prompt, cache, question.output, observed=kind.observed)

    def _predicted(self, kind: Kind) -> int:
        loaded, prompt = self.loaded, self.question.prompt
        return kind.predicted(loaded.described, loaded.dtype, self._all_sizes, prompt)

    def _row(self, kind: Kind, generated: Generated, reference: Generated) -> Row:
        question = self.question
        held = generated.held
        return Row(
            cache=kind.name,
            note=kind.note,
            prompt_tokens=question.prompt,
            output_tokens=question.output,
            positions_processed=generated.positions,
            predicted_bytes=self._predicted(kind),
            device_bytes=held.device,
            host_bytes=held.host,
            disk_bytes=held.disk,
            prefill_bytes=generated.prefill_held.total,
            peak_bytes=generated.peak_bytes,
            ttft_s=generated.ttft_s,
            itl_s=generated.itl_s,
            same_tokens=_same(generated.tokens, reference.tokens),
            exact=kind.exact,
        )

    def _quality(self, kind: Kind) -> tuple[Perplexity | None, tuple[Found, ...] | None]:
        from kvplan.lab.needles import search
        from kvplan.lab.quality import perplexity

        def make(tokens: int) -> Any:
            return kind.make(self.loaded.config, self._sizes(tokens))

        read = found = None
        if self.passages:
            read = perplexity(self.loaded, self.passages, make, observed=kind.observed)
        if self.needles:
            found = tuple(search(self.loaded, self.needles, make, observed=kind.observed))
        return read, found

    def _batch(self) -> Shared | None:
        if self.question.requests < 2 or KINDS["paged"] not in self.question.kinds:
            return None
        from kvplan.lab.sharing import share

        self.progress("a batch with one system prompt", 0, 1)
        return self._or_left_out(
            "the batch", lambda: share(self.loaded, self.question, self.tokens)
        )

    def _lost(self) -> tuple[Lost, ...] | None:
        from kvplan.lab.shortened import EVICTING, compare

        if not self.passages or not any(kind.name in EVICTING for kind in self.question.kinds):
            return ()
        self.progress("a shortened prompt", 0, 1)
        question = self.question
        return self._or_left_out(
            "the shortened prompt",
            lambda: compare(self.loaded, self.passages, question.output, question.sizes),
        )

    def _compiled(self) -> tuple[Compiled, ...]:
        if not self.question.compile_s:
            return ()
        from kvplan.lab.compiled import compare

        self.progress("torch.compile", 0, 1)
        return compare(self.loaded, self.question.compile_s)


def _same(tokens: Sequence[int], reference: Sequence[int]) -> int:
    """Tokens up to the first that differs."""
    for place, (mine, theirs) in enumerate(zip(tokens, reference, strict=True)):
        if mine != theirs:
            return place
    return len(tokens)
