"""``kvplan lab``: real caches on a real model, side by side."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.options import Explain, Json, Offline, Output


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("lab")(lab)


def lab(
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="A causal model by hub name, folder or GGUF file. Default: SmolLM2-135M's real "
            "weights, downloaded once.",
        ),
    ] = None,
    caches: Annotated[
        str,
        typer.Option(
            "--caches",
            help="Of: full none static paged sliding int8 int4 int2 int4-token int2-token fp8 "
            "offload disk h2o snapkv hqq8 hqq4 hqq2 quanto4 quanto2; several with commas.",
        ),
    ] = "",
    prompt: Annotated[str, typer.Option("--prompt", help="Tokens of the prompt.")] = "512",
    output: Annotated[str, typer.Option("--output", help="Tokens of the answer.")] = "24",
    budget: Annotated[
        str, typer.Option("--budget", help="Tokens that sliding, h2o and snapkv keep.")
    ] = "128",
    sinks: Annotated[
        int, typer.Option("--sinks", help="First tokens that a window keeps, of its budget.")
    ] = 4,
    group: Annotated[
        int, typer.Option("--group", help="Elements that share a scale in int8, int4 and int2.")
    ] = 32,
    residual: Annotated[
        int, typer.Option("--residual", help="Recent tokens that int8, int4 and int2 keep whole.")
    ] = 32,
    block_size: Annotated[int, typer.Option("--block-size", help="Tokens of a page.")] = 16,
    text: Annotated[
        str | None, typer.Option("--text", help="A text to read. Default: Shakespeare's plays.")
    ] = None,
    passages: Annotated[
        int, typer.Option("--passages", help="Passages for the perplexity, a seed each; 0: none.")
    ] = 3,
    passage: Annotated[str, typer.Option("--passage", help="Tokens of each passage.")] = "512",
    needles: Annotated[
        str, typer.Option("--needles", help="Lengths of texts with a hidden fact; empty: none.")
    ] = "192,384",
    requests: Annotated[
        int, typer.Option("--requests", help="Requests of the batch with one system prompt.")
    ] = 4,
    compile_: Annotated[
        float, typer.Option("--compile", help="Seconds that torch.compile may take; 0: not tried.")
    ] = 0,
    device: Annotated[
        str | None, typer.Option("--device", help="cpu or cuda. Default: a GPU where there is one.")
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="f32, bf16 or f16. Default: f32, bf16 on a GPU.")
    ] = None,
    threads: Annotated[
        int | None, typer.Option("--threads", help="Default: one on a small machine.")
    ] = None,
    explain: Explain = False,
    output_file: Output = None,
    offline: Offline = False,
    as_json: Json = False,
) -> None:
    """What each cache holds, costs and does to the answers of a real model."""
    import kvplan
    from kvplan.cli.bar import bar
    from kvplan.cli.show import show

    with bar("running caches") as told:
        answer = kvplan.lab(
            model,
            caches=caches,
            prompt=prompt,
            output=output,
            budget=budget,
            sinks=sinks,
            group=group,
            residual=residual,
            block_size=block_size,
            text=text,
            passages=passages,
            passage=passage,
            needles=needles,
            requests=requests,
            compile=compile_,
            device=device,
            dtype=dtype,
            threads=threads,
            offline=offline,
            progress=(lambda what, done, total: told(done, total)) if told else None,
        )
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
