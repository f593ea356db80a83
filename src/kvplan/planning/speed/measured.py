"""A measurement of one's own server in place of published rates: ``--calibration FOLDER``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, Final

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.core.measured import Calibration, Decode, Prefill, Reads
from kvplan.engines.base import EnginePlan
from kvplan.readers import reach

FILE: Final = "calibration.json"
MOST_BYTES: Final = 4 << 20
MOST_BATCH: Final = 1 << 14
MOST_READ: Final = 1 << 60
# Devices that stand for no card: one whose memory alone was given, and the CPU.
NO_CARD: Final = ("given", "cpu")


def reads_of(plan: EnginePlan) -> Reads | None:
    """What a plan's decode step reads of a rank; None where its weights are not known.

    Layers in host memory are read too: a plan that holds none on its card is asked without the
    engine's rules.
    """
    found = _reads(plan)
    if found is not None:
        return found
    from kvplan.engines.registry import engine_of

    plainly = engine_of("none")
    stored = plan.asked.flags.get("--cache-type-k")
    flags = {} if stored is None else {"--kv-dtype": stored}
    asked = replace(plan.asked, version=None, flags=flags)
    return _reads(plainly.plan(plan.model, plan.node, asked))


def _reads(plan: EnginePlan) -> Reads | None:
    """Of the card; None where nothing is."""
    context = max(2, plan.asked.context)
    token = plan.read_bytes(context, 1) - plan.read_bytes(context - 1, 1)
    weights = plan.weights_read_bytes
    return Reads(weights, token) if weights and token else None


def applies(plan: EnginePlan) -> Calibration | None:
    """The plan's calibration, where it is of its engine and its card."""
    found, device = plan.asked.calibration, plan.node.device.name
    if found is None or found.reads is None or found.engine != plan.engine:
        return None
    if found.card is None:
        return found if device in NO_CARD or not plan.weights_read_bytes else None
    return found if found.card == device else None


def check(calibration: Calibration, engine: str, device: str) -> None:
    """That a calibration is of an engine and a card.

    Raises:
        BadValue: it is of another, or of a model whose bytes were not known.
    """
    if calibration.engine is None:
        raise BadValue(
            "--calibration does not say which engine was measured: its server told nobody.",
            "A measurement of vllm, sglang, llama.cpp or TensorRT-LLM can be planned with.",
        )
    if calibration.engine != engine:
        raise BadValue(
            f"--calibration is of {calibration.engine}, and {engine} is planned.",
            f"Ask with --engine {calibration.engine}, or measure {engine}.",
        )
    if calibration.card is not None and calibration.card != device:
        raise BadValue(
            f"--calibration is of {calibration.card}, and {device} is planned.",
            "A calibration holds for the card that was measured.",
        )
    if calibration.reads is None:
        raise BadValue(
            "--calibration does not know what its model reads.",
            "Measure with --predict-from MODEL, and --gpu NAME where there is a card.",
        )


def read_calibration(folder: str | Path) -> Calibration:
    """The calibration of a folder that ``kvplan measure -o`` wrote, or of the file itself.

    Raises:
        BadValue: a question of names alone, which opens no file.
        SourceUnreachable: there is none.
        BadFile: it is none of ours, or its figures are none.
    """
    reach.check("A folder of measurements (--calibration)")
    path = Path(folder)
    path = path / FILE if path.is_dir() else path
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except OSError as error:
        raise SourceUnreachable(
            f"--calibration {path} cannot be read: {error.strerror or error}.",
            "Measure at two lengths: kvplan measure URL --prompt 128,2k -o FOLDER.",
        ) from None
    try:
        return _of(json.loads(data))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise BadFile(f"{path} is no calibration of kvplan measure.") from None


def _of(found: Mapping[str, Any]) -> Calibration:
    prefill, reads = found["prefill"], found["reads"]
    return Calibration(
        engine=_name(found["engine"]),
        version=_name(found["version"]),
        model=str(found["model"])[:400],
        card=_name(found["card"]),
        decode=Decode(**_figures(found["decode"])),
        prefill=Prefill(**_figures(prefill)) if prefill else None,
        reads=Reads(*(_bytes(reads[key]) for key in Reads._fields)) if reads else None,
        most_batch=min(_bytes(found["most_batch"]), MOST_BATCH),
        bandwidth=_bytes(found["bandwidth"]) if found["bandwidth"] else None,
    )


def _name(value: object) -> str | None:
    return None if value is None else str(value)[:400]


def _bytes(value: object) -> int:
    if not isinstance(value, int) or not 0 < value < MOST_READ:
        raise ValueError("no bytes")
    return value


def _figures(row: Mapping[str, Any]) -> dict[str, float]:
    figures = {str(key): float(value) for key, value in row.items()}
    if not all(isfinite(value) and 0 <= value < 1e6 for value in figures.values()):
        raise ValueError("no figure")
    return figures
