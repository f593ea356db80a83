"""``kvplan measure``: what a running server really does, beside what is predicted of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kvplan.cli.options import Explain, Json, Offline
from kvplan.core.errors import BadQuestion

if TYPE_CHECKING:
    from kvplan.measuring.answer import MeasureAnswer


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("measure")(measure)


def measure(
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="[URL]",
            help="The address of any OpenAI-compatible server, or: compare FOLDER FOLDER.",
            show_default=False,
        ),
    ] = None,
    folders: Annotated[
        list[str] | None, typer.Argument(metavar="[FOLDER FOLDER]", hidden=True)
    ] = None,
    embedded: Annotated[
        bool,
        typer.Option("--embedded", help="Start llama.cpp with SmolLM2-135M here and measure it."),
    ] = False,
    weights: Annotated[
        str | None, typer.Option("--weights", help="Another GGUF file for --embedded.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="One of the server's models; default: its first.")
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option("--workload", help="A trace to send, in any form that simulate reads."),
    ] = None,
    prompt: Annotated[
        str, typer.Option("--prompt", help="Tokens of each prompt, exact: 512 or 512,4k.")
    ] = "512",
    output: Annotated[str, typer.Option("--output", help="Tokens of each answer.")] = "32",
    concurrency: Annotated[
        str | None,
        typer.Option("--concurrency", help="Requests in flight of closed loops. Default: 1,4."),
    ] = None,
    rate: Annotated[
        str | None, typer.Option("--rate", help="Requests a second of open loops: 0.5,2.")
    ] = None,
    requests: Annotated[
        int | None,
        typer.Option(
            "--requests", help="Of each phase; default: twice the concurrency, 8 or more."
        ),
    ] = None,
    prefix: Annotated[
        str,
        typer.Option("--prefix", help="on: prefixes cold and warm; off: nothing shared; both."),
    ] = "both",
    shared_prefix: Annotated[
        str | None,
        typer.Option("--shared-prefix", help="Tokens that warm prompts share; default: 3/4."),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", help="How often all of it is done.")] = 1,
    pressure: Annotated[
        bool,
        typer.Option("--pressure", help="Also send more prefixes than the cache holds, twice."),
    ] = False,
    pool_tokens: Annotated[
        str | None,
        typer.Option("--pool-tokens", help="What the cache holds, where the server is silent."),
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="Ask /v1/chat/completions, not /v1/completions.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option("--threads", help="Of --embedded; default: one on a small machine."),
    ] = None,
    max_time: Annotated[
        float, typer.Option("--max-time", help="Seconds for everything; what is there is kept.")
    ] = 900.0,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds until a request's first token.")
    ] = 300.0,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="The card the server runs on, to predict.")
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", help="How many of them.")] = None,
    predict_from: Annotated[
        str | None,
        typer.Option(
            "--predict-from", help="The model for predictions, where the server's is not."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of the arrivals of open loops.")] = 0,
    output_file: Annotated[
        str | None,
        typer.Option("--output-folder", "-o", help="A folder for everything that was measured."),
    ] = None,
    explain: Explain = False,
    offline: Offline = False,
    as_json: Json = False,
) -> int:
    """Time to first token, time between tokens, reuse of prefixes, memory and counters.

    An API key is taken from KVPLAN_API_KEY or OPENAI_API_KEY and is never written out. Ctrl-C ends
    a measurement and keeps what was measured.
    """
    import kvplan
    from kvplan.cli.bar import bar
    from kvplan.cli.show import show

    if target == "compare":
        return _compare(folders or [], as_json=as_json, explain=explain, output_file=output_file)
    if folders:
        raise BadQuestion(f"{folders[0]!r} is one address too many.", "As in measure URL.")
    if target is not None:
        _warn(target)
    folder = _place(output_file)
    with bar("measuring") as told:
        answer = kvplan.measure(
            target,
            embedded=embedded,
            weights=weights,
            model=model,
            workload=workload,
            prompt=prompt,
            output=output,
            concurrency=concurrency,
            rate=rate,
            requests=requests,
            prefix=prefix,
            shared_prefix=shared_prefix,
            repeat=repeat,
            pressure=pressure,
            pool_tokens=pool_tokens,
            chat=chat,
            threads=threads,
            max_time=max_time,
            timeout=timeout,
            gpu=gpu,
            gpus=gpus,
            predict_from=predict_from,
            seed=seed,
            offline=offline,
            progress=None if told is None else (lambda _, done, total: told(done, total)),
        )
    show(answer, as_json=as_json, explain=explain, output_file=file_of(output_file))
    if folder is not None:
        _keep(answer, folder)
    return 0 if any(run.requests > run.failed for run in answer.runs) else 1


def file_of(output: str | None) -> str | None:
    """What is a file by its ending; anything else is a folder."""
    from kvplan.cli.show import CHART_ENDINGS, TEXT_ENDINGS

    known = (*TEXT_ENDINGS, *CHART_ENDINGS)
    return output if output is not None and output.lower().endswith(known) else None


def _place(output: str | None) -> Path | None:
    """The folder, made; None where there is none or a file: which then can be written, too."""
    from kvplan.charts.base import load_altair
    from kvplan.cli.show import CHART_ENDINGS
    from kvplan.measuring.folder import make_folder

    if output is None:
        return None
    if file_of(output) is None:
        return make_folder(output)
    if output.lower().endswith(CHART_ENDINGS):
        load_altair()
    make_folder(Path(output).parent)
    return None


def _keep(answer: MeasureAnswer, folder: Path) -> None:
    """Everything that was measured, and the page of it."""
    from kvplan.cli.measure_report import write_report
    from kvplan.measuring.folder import write

    write(answer, folder)
    said = write_report(answer, folder)
    if said:
        typer.echo(f"warning: {said}", err=True)
    typer.echo(f"wrote {folder}/", err=True)


def _compare(folders: list[str], *, as_json: bool, explain: bool, output_file: str | None) -> int:
    from kvplan.cli.show import show
    from kvplan.measuring.compare import compare

    if len(folders) != 2:
        raise BadQuestion("A comparison is of two folders.", "kvplan measure compare A B")
    show(compare(*folders), as_json=as_json, explain=explain, output_file=output_file)
    return 0


def _warn(target: str) -> None:
    """Before load on a machine that is another's, perhaps."""
    from kvplan.measuring.client import Address

    address = Address(target)
    if not address.is_loopback:
        typer.echo(
            f"warning: {address} is another machine: this puts load on it. Ctrl-C ends it and "
            "keeps what was measured.",
            err=True,
        )
