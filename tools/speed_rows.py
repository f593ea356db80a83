"""The published measurements as questions that can be asked: which model, card, engine and traffic.

Every row that is left out is counted with its reason; nothing is left out for being far off.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from functools import cache
from math import isclose
from pathlib import Path
from typing import Any, Final, NamedTuple

from tools.speed_names import (
    ENGINES,
    FORMATS,
    IN_BLOCKS,
    IN_NVFP4,
    MIXTURES,
    MODELS,
    OWN_FP8,
    PAGES,
    SOURCE_OF_LOOPS,
    VALIDATION,
    device_of,
)

REFERENCE: Final = Path(__file__).parent.parent / "tests" / "reference" / "speed"
PUBLISHED: Final = REFERENCE / "published.jsonl.gz"
FAR_APART: Final = 1.2
NOMINAL: Final = 0.9  # of the nominal length is the mean of those drawn from 0.8 to 1
ROUNDED: Final = 1e-3  # figures of one run that two files round differently

SUSPECT: Final = (
    ("inferencex-tokpos", "labelled work in progress by its authors"),
    ("nim", "GPU and lengths are not stated"),
    ("blog", "GPU is not stated"),
    ("lmsys", "an experts' cluster of many nodes"),
)


class Row(NamedTuple):
    """One question with its measured answers, in seconds and tokens a second.

    ``kind`` is ``loop`` (clients that each wait for their answer), ``single`` (one request at a
    time), ``queued`` (all requests at once, as many as fit) or ``prefill`` (one prompt).
    """

    place: int
    kind: str
    source: str
    name: str
    model: str
    group: str
    engine: str
    version: str | None
    device: str
    gpus: int
    tp: int
    pp: int
    experts_dealt: bool
    attention_dp: bool
    quantization: str
    kv_dtype: str
    prompt: float
    output: float
    concurrency: int
    drawn: bool
    metric: str
    value: float


@cache
def published() -> tuple[dict[str, Any], ...]:
    """All rows as they came."""
    with gzip.open(PUBLISHED, "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def rows() -> tuple[list[Row], Counter[str]]:
    """The rows that can be asked, and how many are left out for which reason."""
    kept: list[Row] = []
    left: Counter[str] = Counter()
    for place, raw in enumerate(published()):
        found = _row(place, raw)
        if isinstance(found, str):
            left[found] += 1
        else:
            kept.append(found)
    return _told_once(kept, left), left


def question_of(row: Row) -> tuple[Any, ...]:
    """All that a row states but its answer; a model and its later training are one question."""
    stored = "nvfp4" if "NVFP4" in row.model else row.quantization
    same = row._replace(place=0, value=0.0, name="", model=row.group, quantization=stored)
    return tuple(same)


def run_of(row: Row) -> tuple[Any, ...]:
    """The configuration of a row and the day it was measured on, whatever its traffic."""
    day = re.search(r"measured=([\d-]+)", published()[row.place]["notes"])
    same = row._replace(prompt=0.0, output=0.0, concurrency=0, kind="", metric="")
    return (*question_of(same), day[1] if day else "")


def _told_once(found: list[Row], left: Counter[str]) -> list[Row]:
    """Without rows that repeat a question and its answer, and without questions that have several
    answers far apart: something that decides (draft tokens, as a rule) is not stated. Of two runs
    that contradict each other so, neither is told by its other rows which it is.
    """
    answers: dict[tuple[Any, ...], list[Row]] = {}
    for row in found:
        answers.setdefault(question_of(row), []).append(row)
    doubtful = {question for question, rows in answers.items() if _far_apart(rows)}
    runs = {
        run_of(row) for question in doubtful for row in answers[question] if row.metric == "tpot_s"
    }
    kept: list[Row] = []
    seen: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in found:
        question = question_of(row)
        if question in doubtful:
            left["a question with answers far apart: what decides is not stated"] += 1
        elif any(isclose(row.value, value, rel_tol=ROUNDED) for value in seen[question]):
            left["a row that is there twice"] += 1
        elif row.source == SOURCE_OF_LOOPS and run_of(row) in runs:
            left["of a run that contradicts another of the same configuration"] += 1
        else:
            seen[question].append(row.value)
            kept.append(row)
    return kept


def _far_apart(rows: list[Row]) -> bool:
    values = [row.value for row in rows]
    return max(values) > FAR_APART * min(values)


def _row(place: int, raw: dict[str, Any]) -> Row | str:
    reason = _unusable(raw)
    if reason:
        return reason
    device = device_of(raw["gpu"])
    if device is None:
        return f"a card that is not in the table ({raw['gpu'][:40]})"
    traffic = _traffic(raw)
    if isinstance(traffic, str):
        return traffic
    layout = _layout(raw)
    if isinstance(layout, str):
        return layout
    model, group = MODELS[raw["model"]]
    stored = FORMATS[raw.get("weights") or ""]
    if stored == "nvfp4" and group in IN_NVFP4:
        model, stored = IN_NVFP4[group], ""
    metric = {"TPOT ms": "tpot_s", "TTFT ms": "ttft_s"}.get(raw["metric"], "tokens_per_s")
    value = (
        raw["value"] / 1000
        if metric.endswith("_s") and metric != "tokens_per_s"
        else (raw["value"])
    )
    gpus = layout["gpus"]
    if raw["metric"] == "output tok/s per GPU":
        value *= gpus
    if raw["metric"] == "prefill tok/s":
        metric, value = "ttft_s", traffic["prompt"] / raw["value"]
    elif raw["set"] == "xiongjiedai":
        metric, value = "tpot_s", 1 / raw["value"]
    return Row(
        place=place,
        source=raw["set"],
        name=raw["model"],
        model=model,
        group=group,
        engine=ENGINES[raw["engine"]],
        version=_version(raw.get("engine_version") or ""),
        device=device,
        quantization=stored,
        kv_dtype=_kv(raw),
        metric=metric,
        value=value,
        drawn=_is_drawn(raw),
        **traffic,
        **layout,
    )


def _is_drawn(raw: dict[str, Any]) -> bool:
    """InferenceX draws lengths from 0.8 to 1 of the nominal ones; the others keep them equal.

    The files kimi-k2.5-gap-analysis.csv and qwen3.5-397b-gap-analysis.csv hold InferenceX's own
    figures, rounded: its clients, its lengths, and of Kimi in int4 and of Qwen3.5 on H200 all the
    same answers to four digits.
    """
    return raw["set"] == SOURCE_OF_LOOPS and VALIDATION not in raw["notes"]


def is_validation(row: Row) -> bool:
    """Whether it is of aiconfigurator's own runs: equal lengths, Dynamo before the engine."""
    return row.source == SOURCE_OF_LOOPS and not row.drawn


def is_first_in_loop(row: Row) -> bool:
    """A first token's time of clients that wait for their answers."""
    return row.kind == "loop" and row.metric == "ttft_s"


def in_blocks(row: Row) -> bool:
    """Whether its weights have a scale a block of 128 × 128, as it says or its publisher does."""
    if row.quantization != "fp8" or row.source not in OWN_FP8:
        return False
    return row.group in IN_BLOCKS or "gemm fp8_block" in published()[row.place]["notes"]


def series(row: Row) -> str:
    """The file or run that a row belongs to."""
    notes = published()[row.place]["notes"]
    found = re.search(r"source_file=([^;]+)", notes)
    said = found[1] if found else re.sub(r"\d+", "#", re.sub(r"id \S+", "", notes))[:120]
    swept = "epnone" in notes
    return f"{row.source} {row.engine} {row.device} {row.model} {row.quantization} {said} {swept}"


def _unusable(raw: dict[str, Any]) -> str:
    """Why a row cannot be asked, or nothing."""
    notes, source = raw["notes"], raw["set"]
    for name, reason in SUSPECT:
        if source == name:
            return reason
    if source.startswith("mlperf"):
        return "MLPerf: the arrival rate and the layout are not stated"
    if raw["engine"] not in ENGINES:
        return f"an engine that kvplan does not know ({raw['engine'][:30]})"
    if raw["model"] not in MODELS:
        return f"a model without a config here ({raw['model'][:40]})"
    if "SPECULATIVE" in notes or "speculative" in notes.lower():
        return "speculative decoding of an unstated acceptance"
    if "wip=True" in notes:
        return "labelled work in progress by its authors"
    if raw["metric"] == "ITL ms":
        return "time between tokens beside a time per output token of the same run"
    if (raw.get("weights") or "") not in FORMATS:
        return f"weights in {raw.get('weights')}"
    if not raw.get("gpu") or raw["value"] <= 0:
        return "no card or no value"
    if raw["model"] == "Qwen/Qwen3-235B-A22B-FP8" and raw["engine"] == "vLLM":
        # Some of its rows put 235 GB of weights on one card of 141 GB.
        return "a run whose layouts are not what they say: its weights do not fit its cards"
    if raw["model"] == "Qwen/Qwen3-32B" and raw["gpu"] == "GB200":
        return "Qwen3-32B on GB200, which contradicts itself"
    return ""


def _traffic(raw: dict[str, Any]) -> dict[str, Any] | str:
    """Lengths, clients and the kind of run; or why they are not known."""
    source = raw["set"]
    prompt, output = float(raw.get("isl") or 0), float(raw.get("osl") or 0)
    if source == "accelmark":
        return _accelmark(raw)
    if not prompt and source != "xiongjiedai":
        return "lengths are not stated"
    if source == SOURCE_OF_LOOPS:
        if _is_drawn(raw):
            return _loop(prompt * NOMINAL, output * NOMINAL, int(raw["concurrency"]))
        # Clients are those of all workers, batches those of one (benchmark/vllm.rule of the
        # generator, estimated_concurrency).
        return _loop(prompt, output, int(raw.get("max_batch") or raw["concurrency"]))
    if source == "xiongjiedai":
        kind = "prefill" if raw["metric"] == "prefill tok/s" else "single"
        return {
            "kind": kind,
            "prompt": prompt or 1.0,
            "output": output or 1.0,
            "concurrency": 1,
        }
    if source == PAGES:
        return {"kind": "queued", "prompt": prompt, "output": output, "concurrency": 1 << 20}
    if source == "vultr":
        return _loop(prompt, output, int(raw["concurrency"]))
    if source == "gpustack-lab":
        clients = raw.get("concurrency")
        return (
            _loop(prompt, output, round(clients))
            if clients
            else ("all requests at once: the batch varies over the run")
        )
    if source == "trtllm-static" and raw["metric"] == "TTFT ms":
        return {"kind": "prefill", "prompt": float(prompt), "output": 1.0, "concurrency": 1}
    if source == "trtllm-static" and raw.get("max_batch"):
        return {
            "kind": "static",
            "prompt": prompt,
            "output": output,
            "concurrency": int(raw["max_batch"]),
        }
    if raw.get("concurrency") == 1 and source == "issue":
        return _loop(prompt, output, 1)
    return "requests at a rate or all at once: the batch varies over the run"


def _loop(prompt: float, output: float, clients: int) -> dict[str, Any]:
    kind = "single" if clients == 1 else "loop"
    return {"kind": kind, "prompt": float(prompt), "output": float(output), "concurrency": clients}


def _accelmark(raw: dict[str, Any]) -> dict[str, Any] | str:
    """ShareGPT's lengths at the median, one request at a time."""
    if "long-context" in raw["notes"]:
        return "lengths are not stated"
    if raw.get("concurrency") != 1:
        return "requests at a rate or all at once: the batch varies over the run"
    return {"kind": "single", "prompt": 280.0, "output": 310.0, "concurrency": 1}


def _layout(raw: dict[str, Any]) -> dict[str, Any] | str:
    """Cards and ranks; or why they are not known.

    Some rows of InferenceX multiply tensor by expert parallelism (64 = 8 × 8 on a node of eight):
    their tensor parallelism is the quotient.
    """
    gpus, tp = int(raw.get("gpu_count") or 1), int(raw.get("tp") or 0)
    ep, pp = int(raw.get("ep") or 1), int(raw.get("pp") or 1)
    found = re.search(r"attention_dp (\d+), moe_tp (\d+)", raw["notes"])
    dp = int(found[1]) if found else 1
    if _is_page_of_experts(raw):
        dp, ep = gpus // pp, gpus // pp
    if raw["set"] == SOURCE_OF_LOOPS and gpus > 8 and ep > 1 and gpus == ep * ep:
        gpus, tp, dp = gpus // ep, (tp if tp == 1 else tp // ep), (ep if dp > 1 else 1)
    if gpus > 8 or (gpus > 4 and raw["gpu"].startswith("GB")):
        return "more cards than a node has: prefill and decode apart, or summed"
    if raw["set"] == SOURCE_OF_LOOPS and dp > 1 and tp > 1:
        return "attention ranks and tensor ranks that do not multiply to the cards"
    tp = gpus // pp if dp > 1 else (tp or gpus)
    if raw["set"] == "accelmark" and tp < gpus:
        gpus = tp
    return {
        "gpus": gpus,
        "tp": tp,
        "pp": pp,
        "experts_dealt": ep > 1,
        "attention_dp": dp > 1,
    }


def _is_page_of_experts(raw: dict[str, Any]) -> bool:
    """Whether TensorRT-LLM's page of throughput ran it with attention DP and experts dealt out: all
    mixtures on several cards (its llm_options.yml "for MoE models"; tables of 1.2 say DEP).
    """
    model = MODELS.get(raw["model"], ("", ""))[1]
    return raw["set"] == PAGES and model in MIXTURES and int(raw.get("gpu_count") or 1) > 1


def _version(said: str) -> str | None:
    """A release by its number."""
    found = re.search(r"\d+\.\d+(\.\d+)?", said)
    return found[0] if found else None


def _kv(raw: dict[str, Any]) -> str:
    """The cache's format: stated, or what the recipes of a source use.

    TensorRT-LLM's quantised checkpoints and InferenceX's recipes for vLLM keep it in fp8; SGLang's
    do on Blackwell and for Qwen3.5. aiconfigurator's configurations of quantised models do too (its
    README: GEMM fp8_block, KVCache fp8).
    """
    stated = raw.get("kv") or ""
    if raw["set"] == PAGES and "OSS" in raw["model"] and raw["gpu"].startswith("H"):
        return "auto"  # as the page's llm_options.yml says of Hopper
    if stated in ("fp8", "auto", "fp16", "f16"):
        return "fp8" if stated == "fp8" else "auto"
    quantised = (raw.get("weights") or "") in ("fp8", "fp4", "nvfp4")
    blackwell = raw["gpu"].startswith(("B200", "B300", "GB"))
    engine = raw["engine"]
    if not quantised:
        return "auto"
    if engine == "TensorRT-LLM" or VALIDATION in raw["notes"]:
        return "fp8"
    usual = engine == "vLLM" or blackwell or "Qwen3.5" in raw["model"]
    return "fp8" if _is_drawn(raw) and usual else "auto"
