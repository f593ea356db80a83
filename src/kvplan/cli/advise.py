"""``kvplan advise``: the cheapest way to serve a model to its users."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kvplan.cli.options import (
    Calibration,
    Capital,
    Currency,
    Discount,
    ExchangeRate,
    Explain,
    Json,
    LifeYears,
    Offline,
    Output,
    PowerPrice,
    PowerWatts,
    Price,
    PriceKind,
    Provider,
    Pue,
    Set,
    parse_overrides,
)

if TYPE_CHECKING:
    from kvplan.planning.advise import AdviseAnswer

MANIFESTS = (".yaml", ".yml")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("advise")(advise)


def advise(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...", help="One model as fit takes it, or several to compare."
        ),
    ],
    users: Annotated[
        int | None, typer.Option("--users", help="Requests in flight at once. Default: 1.")
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", help="Requests for a time instead: 2/s, 500/h.")
    ] = None,
    think: Annotated[
        str | None, typer.Option("--think", help="Each user's pause between requests: 30s.")
    ] = None,
    trace: Annotated[
        str | None, typer.Option("--trace", help="A file of requests: its lengths, and its rate.")
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="Tokens of a conversation at its longest: 32k.")
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", help="Lengths of prompts: 2000, uniform:…, lognormal:…, empirical:…"
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", help="Lengths of answers, likewise. Default: 512.")
    ] = None,
    shared_prefix: Annotated[
        str | None, typer.Option("--shared-prefix", help="Tokens that all prompts begin with.")
    ] = None,
    hit_rate: Annotated[
        str | None,
        typer.Option("--hit-rate", help="The share of the rest that the cache has: 80%."),
    ] = None,
    ttft: Annotated[
        str | None, typer.Option("--ttft", help="Time to first token that must hold: 2s.")
    ] = None,
    tpot: Annotated[
        str | None, typer.Option("--tpot", help="Time per output token that must hold: 50ms.")
    ] = None,
    percentile: Annotated[
        str | None, typer.Option("--percentile", help="Of requests, for both. Default: p95.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Money for a time: 10/h, 5000/month.")
    ] = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option("--gpu", help="Cards that are allowed, as A,B. Default: all that are known."),
    ] = None,
    gpu_memory: Annotated[
        str | None, typer.Option("--gpu-memory", help="Of the one card that is named: 48GiB.")
    ] = None,
    max_gpus: Annotated[
        int | None, typer.Option("--max-gpus", "--gpus", help="Cards at most. Default: 32.")
    ] = None,
    size_at: Annotated[
        str | None,
        typer.Option("--size-at", help="Room for a percentile of the lengths: p95. Default: peak."),
    ] = None,
    sure: Annotated[
        bool, typer.Option("--sure", help="Times hold at the upper end of the estimate's band.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="Default: vllm; llama.cpp on named cards without it."),
    ] = None,
    engine_version: Annotated[
        str | None, typer.Option("--engine-version", help="The engine's release.")
    ] = None,
    allow_quantise: Annotated[
        bool,
        typer.Option(
            "--allow-quantise", help="Weights may be quantised where no such copy is published."
        ),
    ] = False,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="The choice has to meet the goals in the simulator.")
    ] = False,
    api: Annotated[
        str | None, typer.Option("--api", help="A hosted model beside it: openai/gpt-5-mini.")
    ] = None,
    emit: Annotated[
        str | None, typer.Option("--emit", help="Print what starts it: command, compose or k8s.")
    ] = None,
    price: Price = None,
    currency: Currency = "USD",
    exchange_rate: ExchangeRate = None,
    price_kind: PriceKind = "on-demand",
    discount: Discount = None,
    provider: Provider = None,
    capital: Capital = None,
    life_years: LifeYears = None,
    power_price: PowerPrice = None,
    pue: Pue = None,
    power_watts: PowerWatts = None,
    whole_instances: Annotated[
        bool, typer.Option("--whole-instances", help="Pay all cards of a listed instance.")
    ] = False,
    engine_flag: Annotated[list[str] | None, typer.Option("--engine-flag", hidden=True)] = None,
    set_: Set = None,
    explain: Explain = False,
    output_file: Output = None,
    calibration: Calibration = None,
    offline: Offline = False,
    as_json: Json = False,
) -> int:
    """What to rent for a model and its users: the cheapest that meets the goals, and why not else.

    Every card, layout and cache format is planned by the engine's own rules; its flags are taken
    in its own spelling and hold for all. -o deploy.yaml writes the manifest of the best.
    """
    import kvplan
    from kvplan.cli.bar import bar
    from kvplan.cli.engine_flags import parse_carried
    from kvplan.cli.show import show
    from kvplan.engines.names import keywords_of

    flags = parse_carried(engine_flag)
    with bar("simulating") as progress:
        answer = kvplan.advise(
            models if len(models) > 1 else models[0],
            users=users,
            rate=rate,
            think=think,
            trace=trace,
            context=context,
            prompt=prompt,
            output=output,
            shared_prefix=shared_prefix,
            hit_rate=hit_rate,
            ttft=ttft,
            tpot=tpot,
            percentile=percentile,
            budget=budget,
            gpu=gpu or None,
            gpu_memory=gpu_memory,
            max_gpus=max_gpus,
            size_at=size_at,
            sure=sure,
            engine=engine,
            engine_version=engine_version,
            allow_quantise=allow_quantise,
            simulate=simulate,
            api=api,
            price=price,
            currency=currency,
            exchange_rate=exchange_rate,
            price_kind=price_kind,
            discount=discount,
            provider=provider,
            capital=capital,
            life_years=life_years,
            power_price=power_price,
            pue=pue,
            power_watts=power_watts,
            whole_instances=whole_instances,
            set=parse_overrides(set_),
            offline=offline,
            calibration=calibration,
            progress=progress,
            **keywords_of(flags),
        )
    status = 0 if answer.best else 1
    if emit is not None and not as_json:
        _print_start(answer, emit)
        return status
    if output_file is not None and Path(output_file).suffix.lower() in MANIFESTS:
        _write_start(answer, emit or _form_of(output_file), Path(output_file))
        output_file = None
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
    return status


def _print_start(answer: AdviseAnswer, form: str) -> None:
    from kvplan.planning.advise.deploy import emit

    typer.echo(emit(_started(answer), form), nl=False)


def _write_start(answer: AdviseAnswer, form: str, path: Path) -> None:
    from kvplan.core.errors import SourceUnreachable
    from kvplan.planning.advise.deploy import emit

    text = emit(_started(answer), form)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be written: {error.strerror or error}.") from None
    typer.echo(f"wrote {path}", err=True)


def _form_of(name: str) -> str:
    return "compose" if "compose" in Path(name).name else "k8s"


def _started(answer: AdviseAnswer) -> Any:
    """The best option's outcome."""
    from kvplan.core.errors import BadValue

    best = answer.best
    if best is None:
        raise BadValue(
            "Nothing meets the goals: there is nothing to start.", "See it without --emit."
        )
    return best.outcome
