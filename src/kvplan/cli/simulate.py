"""``kvplan simulate``: what traffic does to a plan over time."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kvplan.cli.options import (
    Assume,
    Calibration,
    EncoderTokens,
    Explain,
    Json,
    Offline,
    Set,
    parse_overrides,
)

# Flags of the command alone; all others are keywords of kvplan.simulate.
OWN = {"replay", "output_file", "explain", "as_json", "engine_flag", "set_", "sweep", "find_rate",
       "results", "backend", "jobs", "ttft", "tpot", "percentile"}  # fmt: skip


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("simulate")(simulate)


def _option(name: str, text: str) -> Any:
    return typer.Option(name, help=text)


def simulate(
    context_: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="As of kvplan fit.", show_default=False),
    ] = None,
    trace: Annotated[
        str | None,
        _option("--trace", "A file of requests (JSONL or CSV, gzip or not), or -."),
    ] = None,
    requests: Annotated[int | None, _option("--requests", "How many requests.")] = None,
    rate: Annotated[
        float | None,
        _option("--rate", "Requests a second; a trace is stretched to it."),
    ] = None,
    concurrency: Annotated[
        int | None,
        _option("--concurrency", "Requests that the client keeps open, not a rate."),
    ] = None,
    prompt: Annotated[
        str, _option("--prompt", "Lengths: 800, uniform:800-1000, lognormal:1000,0.8 …")
    ] = "1024",
    output: Annotated[
        str | None,
        _option("--output", "Lengths of answers. Default: 256, or the trace's."),
    ] = None,
    arrivals: Annotated[str, _option("--arrivals", "poisson, gamma or constant.")] = "poisson",
    cv: Annotated[float, _option("--cv", "Of gamma arrivals: above 1 is bursts.")] = 1.0,
    shared_prefix: Annotated[
        str, _option("--shared-prefix", "Tokens that all prompts of a kind begin with.")
    ] = "0",
    prefixes: Annotated[int, _option("--prefixes", "How many kinds there are.")] = 1,
    turns: Annotated[int, _option("--turns", "Of a conversation.")] = 1,
    think: Annotated[str, _option("--think", "Seconds between an answer and a turn.")] = "0",
    columns: Annotated[
        str | None,
        _option("--columns", "A trace's columns: arrival=ts:ms,prompt=in,output=out."),
    ] = None,
    recorded: Annotated[
        bool | None,
        typer.Option("--recorded/--not-recorded", help="Take a trace's arrivals as they are."),
    ] = None,
    tokenizer: Annotated[str | None, _option("--tokenizer", "For traces of text.")] = None,
    workload: Annotated[str | None, _option("--workload", "Of a summary of several.")] = None,
    replicas: Annotated[int, _option("--replicas", "Copies of the whole start.")] = 1,
    router: Annotated[
        str, _option("--router", "round-robin, least-loaded or prefix-aware.")
    ] = "round-robin",
    prefill_replicas: Annotated[
        int, _option("--prefill-replicas", "Copies that compute prompts alone (vllm).")
    ] = 0,
    link: Annotated[
        str | None, _option("--link", "That a cache is handed over with: 50GB/s.")
    ] = None,
    policy: Annotated[
        str,
        _option("--policy", "fcfs, priority, shortest; of sglang also lpm and lof."),
    ] = "fcfs",
    preemption: Annotated[str, _option("--preemption", "recompute or swap.")] = "recompute",
    cache: Annotated[str, _option("--cache", "paged or contiguous.")] = "paged",
    reserve: Annotated[str, _option("--reserve", "Contiguous: max, power or oracle.")] = "max",
    watermark: Annotated[
        float, _option("--watermark", "Share of the blocks that admission leaves free.")
    ] = 0.0,
    seed: Annotated[int, _option("--seed", "Of all draws.")] = 0,
    seeds: Annotated[int, _option("--seeds", "Runs, for confidence.")] = 1,
    time: Annotated[
        str,
        _option("--time", "estimate, bound, constant:10ms, or a CSV file of measured steps."),
    ] = "estimate",
    step_by_step: Annotated[
        bool, typer.Option("--step-by-step", help="Never take steps together.")
    ] = False,
    replay: Annotated[
        str | None,
        _option("--replay", "Step scenarios of a JSONL file, without a clock."),
    ] = None,
    sweep: Annotated[
        list[str] | None,
        _option("--sweep", "rate=1:20, prompt=512,2048, gpu=h100,a100 … Repeatable."),
    ] = None,
    find_rate: Annotated[
        bool,
        typer.Option("--find-rate", help="The largest rate that meets --ttft and --tpot."),
    ] = False,
    ttft: Annotated[str | None, _option("--ttft", "Goal: first token within, as 2s.")] = None,
    tpot: Annotated[str | None, _option("--tpot", "Goal: each token within, as 50ms.")] = None,
    percentile: Annotated[str, _option("--percentile", "That the goal holds at.")] = "p95",
    results: Annotated[
        str | None, _option("--results", "A folder of a sweep's points, to go on from.")
    ] = None,
    backend: Annotated[str, _option("--backend", "Of a sweep: loky (this machine) or ray.")] = (
        "loky"
    ),
    jobs: Annotated[int, _option("--jobs", "Runs of a sweep at once. Default: all cores.")] = -1,
    from_: Annotated[
        str | None,
        _option("--from", "An engine's own command line, or a file with it."),
    ] = None,
    gpu: Annotated[str | None, _option("--gpu", "A device by any name.")] = None,
    gpus: Annotated[int | None, _option("--gpus", "Cards, as tensor parallelism.")] = None,
    engine: Annotated[str | None, _option("--engine", "vllm (the default), sglang …")] = None,
    engine_version: Annotated[
        str | None, _option("--engine-version", "The engine's release.")
    ] = None,
    context: Annotated[
        str | None, _option("--context", "Of one run, where the cache is not paged.")
    ] = None,
    weights_bytes: Annotated[
        str | None, _option("--weights-bytes", "What the weights take: 14.9GiB.")
    ] = None,
    gpu_memory: Annotated[str | None, _option("--gpu-memory", "A card's memory: 81559MiB.")] = None,
    free_memory: Annotated[
        str | None, _option("--free-memory", "What a card has free at the start.")
    ] = None,
    bandwidth: Annotated[
        str | None, _option("--bandwidth", "A card's memory bandwidth: 2000GB/s.")
    ] = None,
    host_bandwidth: Annotated[
        str | None, _option("--host-bandwidth", "From host memory to a card: 25GB/s.")
    ] = None,
    kv_pool: Annotated[
        str | None, _option("--kv-pool", "A card's pool as a log states it: 39.28GiB.")
    ] = None,
    engine_flag: Annotated[list[str] | None, typer.Option("--engine-flag", hidden=True)] = None,
    set_: Set = None,
    encoder_tokens: EncoderTokens = None,
    assume: Assume = "",
    calibration: Calibration = None,
    offline: Offline = False,
    explain: Explain = False,
    output_file: Annotated[
        str | None,
        typer.Option(
            "--output-file",
            "-o",
            help="Write to a file: .json .csv .md .html .png .svg .trace.json .parquet.",
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """What traffic does to a plan over time: latency, throughput, hits, preemptions.

    The engine's own scheduler decides, in virtual time; its flags are taken in its own spelling.
    """
    from kvplan.cli.show import show

    given = dict(context_.params)
    question = {key: value for key, value in given.items() if key not in OWN}
    answer = _answer(question | {"set": parse_overrides(set_)}, given)
    show(answer, as_json=as_json, explain=explain, output_file=output_file)
    return 0 if getattr(answer, "met", True) else 1


def _answer(question: dict[str, Any], given: dict[str, Any]) -> Any:
    """One simulation, a replay, a sweep or a search, whichever is asked for."""
    from kvplan.cli.bar import bar
    from kvplan.cli.engine_flags import parse_carried
    from kvplan.engines.names import keywords_of
    from kvplan.simulation.needed import check_installed

    check_installed()
    if given["replay"] is not None:
        from kvplan.simulation.answers import replay_file

        return replay_file(given["replay"])
    _check_goals(given)
    flags = parse_carried(given["engine_flag"])
    question |= keywords_of(flags)
    with bar("simulating") as progress:
        if given["find_rate"]:
            from kvplan.simulation.find_rate import find_rate

            goal = {key: given[key] for key in ("ttft", "tpot", "percentile")}
            return find_rate(question, progress=progress, **goal)
        if given["sweep"]:
            from kvplan.simulation.sweep import sweep

            how = {key: given[key] for key in ("results", "backend", "jobs")}
            return sweep(question, given["sweep"], progress=progress, **how)
        from kvplan.simulation.simulate import simulate as run

        return run(progress=progress, **question)


def _check_goals(given: dict[str, Any]) -> None:
    """Nothing where what is said of a search or a sweep has one.

    Raises:
        BadValue: a goal without --find-rate, or a folder of results without --sweep.
    """
    from kvplan.core.errors import BadValue

    goals = [f"--{name}" for name in ("ttft", "tpot") if given[name] is not None]
    if goals and not given["find_rate"]:
        raise BadValue(f"{goals[0]} is a goal of --find-rate.", "Pass both, or neither.")
    if given["results"] is not None and not given["sweep"]:
        raise BadValue("--results keeps the points of a sweep.", "Pass --sweep too.")
