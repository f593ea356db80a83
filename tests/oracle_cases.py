"""The frozen cases of what transformers itself keeps, and what kvplan says of the same configs.

Run it for a report of every difference, by model type or by file:

    python -m tests.oracle_cases [model_type or file …]
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.core.errors import KvplanError
from kvplan.core.formats import FORMATS
from kvplan.core.model import Model
from kvplan.readers.families.base import Options
from kvplan.readers.hf_config import read_config

REFERENCE = Path(__file__).parent / "reference"
CONFIGS = REFERENCE / "configs"


class Case(NamedTuple):
    """One record: a config, and what was measured with it."""

    name: str
    config: dict[str, Any]
    record: dict[str, Any]

    @property
    def answered(self) -> bool:
        return any("prefill" in row for row in self.record.get("meas") or [])

    @property
    def backbone_only(self) -> bool:
        """Whether transformers could run the text decoder of this model alone."""
        return "text backbone" in self.record["method"]

    @property
    def parameters(self) -> int | None:
        if repaired(self.record):
            return None  # the whole model was counted with another head width
        counted = self.record.get("params") or {}
        if self.backbone_only or "full_params" in self.record:
            counted = self.record.get("full_params") or {}
        return counted.get("params")

    def sizes(self) -> Iterator[tuple[int, int, int | None, int]]:
        """``(sequences, tokens, encoder tokens, bytes)`` of everything that was measured."""
        for row in self.record.get("meas") or []:
            if "prefill" in row:
                yield row["B"], row["T"], row.get("encoder_tokens"), row["prefill"]["bytes"]
            if "after3" in row:
                after = row["after3"]["bytes"]
                yield row["B"], row["T"] + 3, row.get("encoder_tokens"), after


def _lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(REFERENCE / "kv_oracle" / name, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


@cache
def default_cases() -> tuple[Case, ...]:
    """Every type with its class defaults; the class that was built decides its form."""
    return tuple(
        Case(f"{row['model_type']}/{row['tag']}", as_built(row), row)
        for row in _lines("default_configs.jsonl.gz")
        if row.get("config")
    )


def as_built(row: dict[str, Any]) -> dict[str, Any]:
    """The recorded config, naming the class that the record is of."""
    config = dict(row["config"])
    if row.get("cls") and "text backbone" not in row["method"]:
        config["architectures"] = [row["cls"]]
    if repaired(row):
        config["text_config"] = config["text_config"] | repaired(row)
    return config


def repaired(row: dict[str, Any]) -> dict[str, int]:
    """The head width that a text model was given where it could not run with its class's own."""
    width = (row.get("override") or {}).get("text_config.head_dim")
    return {"head_dim": width} if width and "text backbone" in row["method"] else {}


@cache
def real_cases() -> tuple[Case, ...]:
    """Published configs at full size."""
    found = []
    for row in _lines("real_models.jsonl.gz"):
        text = (CONFIGS / row["file"]).read_text(encoding="utf-8")
        found.append(Case(row["file"], json.loads(text), row))
    return tuple(found)


def model_of(case: Case, encoder_tokens: int | None = None) -> Model:
    return read_config(case.config, options=Options(encoder_tokens=encoder_tokens))


def differences(case: Case) -> list[str]:
    """What kvplan says otherwise than the record, a line each."""
    found = []
    try:
        for encoder_tokens in {row[2] for row in case.sizes()} or {None}:
            model = model_of(case, encoder_tokens)
            curve = model.curve(FORMATS["bf16"])
            for sequences, tokens, given, measured in case.sizes():
                if given == encoder_tokens and curve.bytes(tokens) * sequences != measured:
                    ours = curve.bytes(tokens) * sequences
                    found.append(f"bytes B={sequences} T={tokens} S={given}: {ours} != {measured}")
        if case.parameters is not None:
            assert model.weights is not None
            if model.weights.parameters != case.parameters:
                off = model.weights.parameters - case.parameters
                found.append(f"parameters off by {off:+,} of {case.parameters:,}")
    except KvplanError as error:
        found.append(f"refused: {error}")
    except Exception as error:
        found.append(f"crashed: {type(error).__name__}: {error}")
    return found


def main(wanted: list[str]) -> None:
    counted = {"right": 0, "bytes": 0, "parameters": 0, "refused": 0, "crashed": 0}
    for case in (*default_cases(), *real_cases()):
        kinds = {case.record["model_type"], case.config.get("model_type"), case.name}
        if wanted and not kinds & set(wanted):
            continue
        lines = differences(case)
        first = {line.split()[0].rstrip(":") for line in lines}
        for kind in first or {"right"}:
            counted[kind] += 1
        if lines:
            answered = "" if case.answered else " [no measured bytes]"
            print(f"{case.name}{answered}: " + "; ".join(lines[:3]))
    print(counted)


if __name__ == "__main__":
    main(sys.argv[1:])
