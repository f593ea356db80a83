"""``kvplan prefix``: what requests share, what an engine reuses, and where they part."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.options import Explain, Json, KvDtype, Offline, Output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("prefix")(prefix)


def prefix(
    requests: Annotated[
        str,
        typer.Argument(
            metavar="REQUESTS",
            help="A file or folder of texts, messages, token ids or a trace with block ids; or -.",
            show_default=False,
        ),
    ],
    block_size: Annotated[
        str | None, typer.Option("--block-size", help="Tokens of a block: of vLLM 16.")
    ] = None,
    engine: Annotated[
        str, typer.Option("--engine", help="vllm, sglang, llama.cpp, or none: whatever was seen.")
    ] = "vllm",
    engine_version: Annotated[
        str | None, typer.Option("--engine-version", help="For the plan; the newest known.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option("--tokenizer", help="A tokenizer.json, or a name of the hub. Else estimated."),
    ] = None,
    pool_blocks: Annotated[
        str | None, typer.Option("--pool-blocks", help="Pools to try, in blocks: 1000,4000.")
    ] = None,
    pool: Annotated[
        str | None, typer.Option("--pool", help="A pool in bytes, with --model: 40GiB.")
    ] = None,
    warm_up: Annotated[
        float, typer.Option("--warm-up", help="Share of requests that only fill the pool: 0.5.")
    ] = 0.0,
    slots: Annotated[str, typer.Option("--slots", help="Of llama.cpp.")] = "4",
    first: Annotated[
        str | None, typer.Option("--first", help="Take the first so many requests.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="What the prompts are for; with --gpu: the time.")
    ] = None,
    gpu: Annotated[str | None, typer.Option("--gpu", help="The card that computes them.")] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", help="How many cards.")] = None,
    price: Annotated[
        float | None, typer.Option("--price", help="Of one card for one hour.")
    ] = None,
    currency: Annotated[str, typer.Option("--currency", help="Of the price.")] = "USD",
    kv_dtype: KvDtype = "bf16",
    api: Annotated[
        str | None, typer.Option("--api", help="A hosted model's bill: openai/gpt-5-mini.")
    ] = None,
    explain: Explain = False,
    output_file: Output = None,
    offline: Offline = False,
    as_json: Json = False,
) -> int:
    """What requests share, what an engine reuses of it, and where they part and at what cost.

    Prompts that begin alike are computed once; a time of day before a handbook is enough to compute
    the handbook for everyone again.
    """
    import kvplan
    from kvplan.cli.bar import bar
    from kvplan.cli.show import show

    with bar("comparing prompts") as told:
        answer = kvplan.prefix(
            requests,
            block_size=block_size,
            engine=engine,
            engine_version=engine_version,
            tokenizer=tokenizer,
            pool_blocks=pool_blocks,
            pool=pool,
            warm_up=warm_up,
            slots=slots,
            first=first,
            model=model,
            gpu=gpu,
            gpus=gpus,
            price=price,
            currency=currency,
            kv_dtype=kv_dtype,
            api=api,
            offline=offline,
            on_progress=told,
        )
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
    return 0
