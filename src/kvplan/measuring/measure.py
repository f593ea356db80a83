"""``measure``: what a running server really does, beside what is predicted of it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kvplan.core.errors import BadQuestion, BadValue, not_installed
from kvplan.core.units import parse_count, parse_tokens, round_up
from kvplan.measuring.answer import MeasureAnswer
from kvplan.measuring.bandwidth import host_bandwidth
from kvplan.measuring.calibration import calibration_of
from kvplan.measuring.client import Address
from kvplan.measuring.connection import Limits
from kvplan.measuring.differences import differences
from kvplan.measuring.embedded.server import serving
from kvplan.measuring.embedded.settings import Settings, default_threads
from kvplan.measuring.embedded.weights import embedded_weights
from kvplan.measuring.environment import environment
from kvplan.measuring.experiment import Asked, Experiment, Progress, experiment
from kvplan.measuring.phases import PREFIXES, Shape
from kvplan.measuring.predicted import Card, predict
from kvplan.measuring.summary import summarise
from kvplan.measuring.workload import Workload
from kvplan.readers.devices import find_device

MOST_OF_A_TRACE: Final = 200  # requests, where nobody asks for more
MOST_CONCURRENCY: Final = 4096
MOST_RATE: Final = 10_000.0
MOST_TOKENS: Final = 1 << 21
SLOT_ROUND: Final = 256  # llama.cpp rounds a slot's cells up to these
USUAL_CONCURRENCY: Final = (1, 4)
USUAL_SHARE: Final = 0.75  # of a prompt that a prefix is, where nothing else is asked


def measure(
    target: str | None = None,
    *,
    embedded: bool = False,
    weights: str | Path | None = None,
    model: str | None = None,
    workload: str | Path | None = None,
    prompt: int | str | Sequence[int] = 512,
    output: int | str = 32,
    concurrency: str | int | Sequence[int] | None = None,
    rate: str | float | Sequence[float] | None = None,
    requests: int | None = None,
    prefix: str = "both",
    shared_prefix: int | str | None = None,
    repeat: int = 1,
    pressure: bool = False,
    pool_tokens: int | str | None = None,
    chat: bool = False,
    threads: int | None = None,
    max_time: float = 900.0,
    timeout: float = 300.0,
    gpu: str | None = None,
    gpus: int | None = None,
    predict_from: str | None = None,
    seed: int = 0,
    offline: bool = False,
    progress: Progress | None = None,
    **flags: Any,
) -> MeasureAnswer:
    """Measure a server: first tokens, later tokens, reuse of prefixes, memory, and its counters.

    Args:
        target: the address of any OpenAI-compatible server.
        embedded: start llama.cpp with SmolLM2-135M here and measure that.
        weights: another GGUF file for ``embedded``.
        model: one of the server's models; default: its first.
        workload: a trace of requests to send, in any form that ``simulate`` reads; at given rates
            or concurrencies in place of its own arrivals.
        prompt: tokens of each prompt, exact; several lengths as ``512,4k``.
        output: tokens that each answer has.
        concurrency: requests in flight of closed loops, as ``1,4,16``; default: ``1,4``.
        rate: requests a second of open loops, as ``0.5,2``.
        requests: of each phase; default: twice the concurrency, at least 8.
        prefix: ``on`` measures prefixes cold and warm, ``off`` prompts that share nothing.
        shared_prefix: tokens that warm prompts have in common; default: three quarters.
        repeat: how often everything is done, with new prompts.
        pressure: also send more prefixes than the cache holds, twice.
        pool_tokens: what the cache holds, where the server does not say.
        chat: ask /v1/chat/completions in place of /v1/completions.
        threads: of the embedded server; default: one on a small machine.
        max_time: seconds for everything; what was measured until then is kept.
        timeout: seconds until a first token.
        gpu: the card that the server runs on, to predict.
        gpus: how many, as tensor parallelism.
        predict_from: where kvplan finds the model, if not where the server says.
        seed: of arrivals.
        offline: never ask the hub.
        progress: told of each phase as it begins.
        flags: the engine's own flags that the server does not tell, to predict.

    Raises:
        BadQuestion: a value that cannot be read, or a server that cannot be measured so.
        SourceUnreachable: nobody answers.
    """
    shapes = tuple(
        _shape(
            one, output, concurrency, rate, requests, prefix, shared_prefix, repeat, pressure, seed
        )
        for one in _several(prompt, "--prompt")
    )
    _check_names(target, embedded or weights is not None, gpu)
    pool = None if pool_tokens is None else parse_tokens(pool_tokens)
    limits = Limits(first_token_s=_seconds(timeout, "--timeout"))
    with ExitStack() as stack:
        asked = Asked(
            address="", shapes=shapes, model=model, chat=chat, limits=limits,
            max_time_s=_seconds(max_time, "--max-time"), pool_tokens=pool,
            workload=_workload(workload, shapes[0], requests, concurrency is not None),
        )  # fmt: skip
        told: dict[str, Any] = dict(flags)
        if embedded or weights is not None:
            settings = _settings(embedded_weights(weights, offline=offline), shapes, threads)
            served = stack.enter_context(serving(settings))
            asked = _with(asked, address=served.address, pid=served.pid)
            told = {**settings.flags, **told}
        elif target is None:
            raise BadQuestion(
                "No server is named.", "kvplan measure http://localhost:8000, or --embedded."
            )
        else:
            asked = _with(asked, address=target)
        found = experiment(asked, progress)
    cores = int(told.get("threads") or os.cpu_count() or 1)
    return answer(
        found,
        card=_card(found, Address(asked.address).is_loopback, gpu, gpus, cores),
        predict_from=predict_from,
        flags=told,
        offline=offline,
    )


def answer(
    found: Experiment,
    *,
    card: Card,
    predict_from: str | None,
    flags: Mapping[str, Any],
    offline: bool,
) -> MeasureAnswer:
    """The answer of a measurement that was made."""
    runs = summarise(found.measured)
    predicted = predict(found.server, runs, card, model=predict_from, flags=flags, offline=offline)
    return MeasureAnswer(
        experiment=found,
        runs=tuple(runs),
        predicted=tuple(predicted.figures),
        differences=tuple(differences(found.server, runs, predicted.figures)),
        calibration=calibration_of(
            found.server, runs, predicted.card, predicted.reads, card.host_bandwidth
        ),
        environment=environment(),
        warnings=(*_warnings(found), *predicted.said),
    )


def _check_names(target: str | None, is_embedded: bool, gpu: str | None) -> None:
    """What would else be found out when all is measured."""
    if target is not None and is_embedded:
        raise BadQuestion(
            f"{target[:100]!r} and --embedded are two servers, and one is measured.",
            "--weights is of --embedded, too.",
        )
    if gpu is not None:
        find_device(gpu)


def _with(asked: Asked, **changed: Any) -> Asked:
    return replace(asked, **changed)


def _warnings(found: Experiment) -> Iterable[str]:
    if not found.is_whole:
        yield f"Ended by {found.ended_by}: what was measured until then is shown."
    short = sum(
        record.reply.failure is None and record.reply.tokens < record.planned.output_tokens
        for one in found.measured
        for record in one.records
    )
    if short:
        yield f"{short:,} answers ended before --output: the server took no ignore_eos."
    if not found.is_verified:
        yield "The server's usage did not confirm the lengths of prompts: they are about right."
    if found.server.metrics is None:
        yield "The server exports no metrics that are known: its counters are missing."


def _card(found: Experiment, is_local: bool, gpu: str | None, gpus: int | None, cores: int) -> Card:
    """The card that was named, else the one that NVML sees, else the memory of these cores."""
    if gpu is not None:
        return Card(gpu=gpu, gpus=gpus)
    if found.memory.card is not None:
        return Card(gpu=found.memory.card, gpus=gpus)
    if is_local and found.server.engine == "llama.cpp":
        return Card(
            host_bandwidth=host_bandwidth(cores), memory_bytes=environment()["memory_bytes"]
        )
    return Card()


def _workload(
    source: str | Path | None, shape: Shape, requests: int | None, at_once: bool
) -> Workload | None:
    """A trace as the simulator reads it."""
    if source is None:
        return None
    try:
        from kvplan.simulation.traces import read_traffic

        traffic = read_traffic(str(source), requests=requests or MOST_OF_A_TRACE)
    except ImportError:
        raise not_installed("--workload needs numpy", "measure") from None
    return Workload(
        traffic=traffic,
        salt=uuid.uuid4().hex[:12],
        concurrency=shape.concurrency if at_once else (),
        rates=shape.rates,
    )


def _settings(path: Path, shapes: Sequence[Shape], threads: int | None) -> Settings:
    """A slot for each conversation that may run at once, a little more than it needs."""
    slots = max(4, *(at_once for shape in shapes for at_once in shape.concurrency or (4,)))
    if slots > 64:
        raise BadValue(f"--embedded has at most 64 slots, and --concurrency asks for {slots}.")
    longest = max(shape.prompt_tokens + shape.output_tokens for shape in shapes)
    each = round_up(longest + 8, SLOT_ROUND)
    count = parse_count(threads, "--threads", 1024) if threads is not None else default_threads()
    return Settings(model=str(path), threads=count, context_tokens=each * slots, slots=slots)


def _shape(
    prompt: int | str,
    output: int | str,
    concurrency: str | int | Sequence[int] | None,
    rate: str | float | Sequence[float] | None,
    requests: int | None,
    prefix: str,
    shared_prefix: int | str | None,
    repeat: int,
    pressure: bool,
    seed: int,
) -> Shape:
    tokens = _tokens(prompt, "--prompt", 8)
    shared = round(tokens * USUAL_SHARE) if shared_prefix is None else parse_tokens(shared_prefix)
    if not 0 < shared < tokens:
        raise BadValue(
            f"A shared prefix of {shared:,} tokens leaves nothing of a prompt of {tokens:,}.",
            "Give a shorter --shared-prefix.",
        )
    if prefix not in PREFIXES:
        raise BadValue(f"--prefix {prefix!r} is none.", f"Known: {', '.join(PREFIXES)}.")
    rates = tuple(_rate(one) for one in _several(rate, "--rate")) if rate is not None else ()
    usual = USUAL_CONCURRENCY if rate is None else ()
    at_once = usual if concurrency is None else _several(concurrency, "--concurrency")
    return Shape(
        prompt_tokens=tokens,
        output_tokens=_tokens(output, "--output", 1),
        shared_tokens=shared,
        concurrency=tuple(parse_count(one, "--concurrency", MOST_CONCURRENCY) for one in at_once),
        rates=rates,
        requests=None if requests is None else parse_count(requests, "--requests", 100_000),
        prefix=prefix,
        repeat=parse_count(repeat, "--repeat", 1000),
        pressure=pressure,
        seed=seed,
    )


def _several(given: object, flag: str) -> list[Any]:
    found = [given]
    if isinstance(given, str):
        found = [part.strip() for part in given.split(",") if part.strip()]
    elif isinstance(given, Sequence):
        found = list(given)
    if not found:
        raise BadValue(f"{flag} names none.")
    return found


def _tokens(given: int | str, flag: str, least: int) -> int:
    tokens = parse_tokens(given)
    if not least <= tokens <= MOST_TOKENS:
        raise BadValue(f"{flag} {tokens:,} is not from {least} to {MOST_TOKENS:,} tokens.")
    return tokens


def _number(given: object) -> float:
    """What is no number is 0, which nobody takes."""
    try:
        return float(str(given))
    except ValueError:
        return 0.0


def _rate(given: object) -> float:
    rate = _number(given)
    if not 0 < rate <= MOST_RATE:
        raise BadValue(f"--rate {str(given)[:40]} is no number of requests a second.")
    return rate


def _seconds(given: object, flag: str) -> float:
    seconds = _number(given)
    if not 0 < seconds <= 86_400:
        raise BadValue(f"{flag} {str(given)[:40]} is not from 0 to 86,400 seconds.")
    return seconds
