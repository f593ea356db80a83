"""``kvplan explain``: what a start-up log says, what follows of it, and what to change."""

from __future__ import annotations

from typing import Annotated

import typer

from kvplan.cli.options import (
    Assume,
    Explain,
    Json,
    Offline,
    Output,
    Set,
    parse_overrides,
)


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("explain")(explain)


def explain(
    log: Annotated[
        str,
        typer.Argument(
            metavar="LOG",
            help="A start-up log of any engine, - (stdin), or a server's /metrics (URL or dump).",
            show_default=False,
        ),
    ],
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="[LOG2]",
            help="A later log: what changed, and why the pool moved.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="The model, where the log does not name it.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="The card, where the log does not name it.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Read /metrics again and again, and plot it.")
    ] = False,
    interval: Annotated[
        float, typer.Option("--interval", help="Seconds between readings of --watch.")
    ] = 5.0,
    count: Annotated[
        int | None, typer.Option("--count", help="Readings of --watch; without it until Ctrl-C.")
    ] = None,
    set_: Set = None,
    assume: Assume = "",
    explain: Explain = False,
    output_file: Output = None,
    offline: Offline = False,
    as_json: Json = False,
) -> int:
    """What an engine printed when it started: every GiB, what went wrong, and what would fit.

    Reads logs of vLLM, SGLang, llama.cpp and its forks, Ollama, LM Studio and TensorRT-LLM, with
    whatever containers, workers and terminals put around their lines.
    """
    import kvplan
    from kvplan.cli.show import show

    if watch:
        from kvplan.cli.watch import watch as watched

        return watched(log, interval_s=interval, count=count, as_json=as_json)

    answer = kvplan.explain(
        log,
        second,
        model=model,
        gpu=gpu,
        set=parse_overrides(set_),
        assume=assume,
        offline=offline,
    )
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
    return 0
