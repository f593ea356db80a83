"""``kvplan fit``: where the card's memory goes and how many conversations fit."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.options import (
    Assume,
    Calibration,
    Capital,
    Currency,
    Discount,
    EncoderTokens,
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


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("fit")(fit)


def fit(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[MODEL]",
            help="A catalogue name, hub id, folder, config.json, .gguf, Ollama name, or - (stdin).",
            show_default=False,
        ),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="An engine's own command line, as 'vllm serve …' or 'docker run …', or a compose "
            "file, Kubernetes manifest or script with it (FILE#NAME for one container).",
        ),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="A device by any name (see kvplan gpus).")
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option("--gpus", help="Cards, as tensor parallelism. Default: --from's, else 1."),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="vllm (the default), sglang, llama.cpp …; none: plain arithmetic.",
        ),
    ] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="Tokens of each conversation, as 32k.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", help="Conversations that have to fit.")
    ] = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Tokens of each request's prompt, as 1k.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", help="Tokens of each answer, as 500.")
    ] = None,
    acceptance: Annotated[
        float | None,
        typer.Option("--acceptance", help="Of a drafted token, where the flags draft: 0.7."),
    ] = None,
    prefill_gpu: Annotated[
        str | None,
        typer.Option("--prefill-gpu", help="Cards that compute the prompts; --gpu then decodes."),
    ] = None,
    prefill_gpus: Annotated[
        int | None, typer.Option("--prefill-gpus", help="How many work on a prompt. Default: 1.")
    ] = None,
    link: Annotated[
        str | None, typer.Option("--link", help="Of each card, from those to these: 50GB/s.")
    ] = None,
    engine_version: Annotated[
        str | None, typer.Option("--engine-version", help="The engine's release.")
    ] = None,
    weights_bytes: Annotated[
        str | None, typer.Option("--weights-bytes", help="What the weights take: 14.9GiB.")
    ] = None,
    gpu_memory: Annotated[
        str | None, typer.Option("--gpu-memory", help="A card's memory: 81559MiB.")
    ] = None,
    bandwidth: Annotated[
        str | None, typer.Option("--bandwidth", help="A card's memory bandwidth: 2000GB/s.")
    ] = None,
    free_memory: Annotated[
        str | None, typer.Option("--free-memory", help="What a card has free at the start: 70GiB.")
    ] = None,
    host_bandwidth: Annotated[
        str | None, typer.Option("--host-bandwidth", help="From host memory to a card: 25GB/s.")
    ] = None,
    kv_pool: Annotated[
        str | None, typer.Option("--kv-pool", help="A card's pool as a log states it: 39.28GiB.")
    ] = None,
    shared_prefix: Annotated[
        str | None, typer.Option("--shared-prefix", help="Tokens that all conversations share.")
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
    engine_flag: Annotated[list[str] | None, typer.Option("--engine-flag", hidden=True)] = None,
    calibration: Calibration = None,
    set_: Set = None,
    encoder_tokens: EncoderTokens = None,
    assume: Assume = "",
    explain: Explain = False,
    output_file: Output = None,
    offline: Offline = False,
    as_json: Json = False,
) -> int:
    """Where the card's memory goes, how many conversations fit, how fast and at what cost.

    The engine's own flags are taken in its own spelling, as --allowance 8GiB and --kv-dtype fp8 of
    --engine none.
    """
    import kvplan
    from kvplan.cli.engine_flags import parse_carried
    from kvplan.cli.show import show
    from kvplan.engines.names import keywords_of

    flags = parse_carried(engine_flag)
    answer = kvplan.fit(
        model,
        from_=from_,
        gpu=gpu,
        gpus=gpus,
        engine=engine,
        engine_version=engine_version,
        context=context,
        concurrency=concurrency,
        prompt=prompt,
        output=output,
        acceptance=acceptance,
        prefill_gpu=prefill_gpu,
        prefill_gpus=prefill_gpus,
        link=link,
        calibration=calibration,
        weights_bytes=weights_bytes,
        gpu_memory=gpu_memory,
        free_memory=free_memory,
        bandwidth=bandwidth,
        host_bandwidth=host_bandwidth,
        kv_pool=kv_pool,
        shared_prefix=shared_prefix,
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
        set=parse_overrides(set_),
        encoder_tokens=encoder_tokens,
        assume=assume,
        offline=offline,
        **keywords_of(flags),
    )
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
    return 0 if answer.fits else 1
