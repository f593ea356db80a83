"""``kvplan size``: what one token and one conversation keep."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.options import (
    Assume,
    EncoderTokens,
    Explain,
    Json,
    KvDtype,
    Offline,
    Output,
    Set,
    parse_overrides,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("size")(size)


def size(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="A catalogue name, hub id, folder, config.json, .gguf, Ollama name, or - (stdin).",
            show_default=False,
        ),
    ],
    context: Annotated[
        str | None,
        typer.Option("--context", help="Lengths: 4096, 4k, 32k, 1m; several with commas."),
    ] = None,
    sequences: Annotated[
        int, typer.Option("--sequences", help="Conversations of that length.")
    ] = 1,
    kv_dtype: KvDtype = "bf16",
    set_: Set = None,
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Prompt tokens, to count processed positions.")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", help="Answer tokens of the same.")
    ] = None,
    requests: Annotated[int, typer.Option("--requests", help="Requests that share a prefix.")] = 1,
    shared_prefix: Annotated[
        str | None, typer.Option("--shared-prefix", help="Tokens of the shared prefix.")
    ] = None,
    encoder_tokens: EncoderTokens = None,
    assume: Assume = "",
    explain: Explain = False,
    output_file: Output = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """What one token and one conversation of a model keep, layer kind by layer kind."""
    import kvplan
    from kvplan.cli.show import show

    answer = kvplan.size(
        models if len(models) > 1 else models[0],
        context=context,
        sequences=sequences,
        kv_dtype=kv_dtype,
        set=parse_overrides(set_),
        prompt=prompt,
        output=output,
        requests=requests,
        shared_prefix=shared_prefix,
        encoder_tokens=encoder_tokens,
        assume=assume,
        offline=offline,
    )
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
