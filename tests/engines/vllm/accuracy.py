"""Predicted beside reported: the pool and the weights of vLLM's start-up reports.

    python -m tests.engines.vllm.accuracy          the table by family and by version

A row is predicted from its command alone: model, card, version and flags. Rows that cannot be are
left out with the reason (``LEFT_OUT``); of the campaign a third of the models, drawn once, was kept
aside while the constants were fitted.
"""

from __future__ import annotations

import json
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from kvplan.core.device import Device
from kvplan.core.errors import KvplanError
from kvplan.core.ledger import Ledger
from kvplan.core.units import GIB
from kvplan.engines.base import Asked, Node
from kvplan.engines.vllm.layout import layout_of
from kvplan.engines.vllm.memory import ledger
from kvplan.engines.vllm.rules import rules_of
from kvplan.engines.vllm.settings import settings_of
from kvplan.readers.devices import find_device
from kvplan.readers.open_model import open_model

FOLDER = Path(__file__).parents[2] / "reference" / "reports"
SEED = 20261130

CARDS = {
    "NVIDIA H100 80GB HBM3": "h100-sxm-80gb", "H100 80GB HBM3": "h100-sxm-80gb",
    "H100 80GB": "h100-sxm-80gb", "H100": "h100-sxm-80gb", "H200": "h200", "B200": "b200",
    "A100-SXM4-80GB": "a100-sxm-80gb", "A100 80GB": "a100-sxm-80gb", "A100": "a100-sxm-80gb",
    "A100 40GB": "a100-sxm-40gb", "A100-SXM4-40GB": "a100-sxm-40gb", "MI300X": "mi300x",
    "GB10 (DGX Spark)": "gb10", "RTX 3090": "rtx-3090", "RTX 4090": "rtx-4090",
    "RTX PRO 6000 Blackwell Server Edition": "rtx-pro-6000-server", "RTX 5080 16GB": "rtx-5080",
}  # fmt: skip

FLAGS = {
    "tp": "--tensor-parallel-size", "pp": "--pipeline-parallel-size",
    "dp": "--data-parallel-size", "max_model_len": "--max-model-len",
    "max_num_seqs": "--max-num-seqs", "max_num_batched_tokens": "--max-num-batched-tokens",
    "gpu_memory_utilization": "--gpu-memory-utilization", "enforce_eager": "--enforce-eager",
    "dtype": "--dtype",
}  # fmt: skip

# Rows whose report leaves open what the pool depends on.
LEFT_OUT = {
    "vllm-0000": "max_num_seqs was set and is not on the page (its sampler is below 0.6 GiB)",
    "vllm-0020": "the limits of images and videos are not on the page (2.7 GiB kept)",
    "vllm-0022": "the limits of images and videos are not on the page (2.7 GiB kept)",
    "vllm-0026": "V0 was asked for by an environment variable",
    "vllm-0027": "V0 was asked for by an environment variable",
    "vllm-0045": "inconsistent",
    "vllm-0072": "the same checkpoint loads 26 GiB less in every later start of the page",
}
# Checkpoints whose recipe is not in the catalogue: what they weigh cannot be told from the name.
UNKNOWN_RECIPES = {
    "vllm-0035", "vllm-0071", "vllm-0073", "vllm-0075", "vllm-0076", "vllm-0077", "vllm-0078",
}  # fmt: skip


class Row(NamedTuple):
    """One report, and what is predicted of it in GiB."""

    id: str
    model: str
    family: str
    version: str
    reported: float
    predicted: float
    band: float
    ledger: Ledger

    @property
    def error(self) -> float:
        """Relative error of the pool."""
        return self.predicted / self.reported - 1

    @property
    def inside(self) -> bool:
        """Whether the band holds the report, printed digits included."""
        return abs(self.predicted - self.reported) <= self.band + 0.005


@cache
def reports(name: str) -> tuple[dict[str, Any], ...]:
    """The rows of a file."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines)


def kept_aside() -> frozenset[str]:
    """A third of the campaign's models, drawn once by the seed."""
    models = sorted({row["model"] for row in reports("vllm_campaign")})
    return frozenset(random.Random(SEED).sample(models, len(models) // 3))


def device_of(row: dict[str, Any]) -> Device | None:
    """The card of a row by its name, else by the total that its log prints."""
    if row["gpu"] in CARDS:
        return find_device(CARDS[row["gpu"]])[0]
    total = row.get("total_gpu_gib") or row.get("gpu_total_gib")
    if total is None:
        return None
    size = round(total * GIB)
    return Device(name="given", title="given", memory_bytes=size, framework_memory_bytes=size)


def predict(row: dict[str, Any]) -> Row | None:
    """The prediction of a row; None where the card, the version or the model is not known."""
    device, version = device_of(row), _version(row)
    if device is None or version is None or device.memory_bytes is None:
        return None
    try:
        model = open_model(row["model"], offline=True)
    except KvplanError:
        return None
    cards = (row["tp"] or 1) * (row["pp"] or 1) * (row["dp"] or 1)
    node = Node(device=device, gpus=cards, memory_bytes=device.memory_bytes)
    flags = {flag: row[key] for key, flag in FLAGS.items() if row.get(key)}
    quantization = row["quantization"] or ""
    if quantization and "(" not in quantization:
        flags["--quantization"] = quantization
    rules = rules_of(version)
    layout, _ = layout_of(model, node, flags)
    asked = Asked(context=1024, flags=flags)
    _, launch = settings_of(model, node, asked, layout, rules)
    found = ledger(model, node, launch, rules.version)
    pool = found.terms[-1]
    return Row(
        row["id"], row["model"], model.model_type, version, row.get("available_kv_gib") or 0.0,
        pool.num_bytes / GIB, pool.error_bytes / GIB, found,
    )  # fmt: skip


def _version(row: dict[str, Any]) -> str | None:
    """A row's version; builds of the main branch print one of their own."""
    text = row["engine_version"]
    if text is None:
        return None
    return "0.20.2" if text.startswith("0.1.dev") else str(text).split("+")[0]


def pools(name: str) -> Iterator[Row]:
    """Every row of a file that states a pool and can be predicted."""
    for row in reports(name):
        if row.get("available_kv_gib") is None or row["id"] in LEFT_OUT | UNNAMED:
            continue
        found = predict(row)
        if found is not None:
            yield found


UNNAMED = dict.fromkeys(UNKNOWN_RECIPES, "the recipe of the checkpoint is not known")


def weights(name: str) -> Iterator[tuple[dict[str, Any], float]]:
    """Rows that state weights, and the relative error of each; they depend on no version."""
    for row in reports(name):
        known = row | {"gpu": row["gpu"] if row["gpu"] in CARDS else "H100"}
        known["engine_version"] = "0.19.0"
        if row.get("weights_gib") is None:
            continue
        found = predict(known)
        if found is not None and found.ledger.terms[0].num_bytes:
            yield row, found.ledger.terms[0].num_bytes / GIB / row["weights_gib"] - 1


def quantile(values: Iterable[float], share: float) -> float:
    """The value that a share of them does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(rows: Iterable[Row], key: str) -> str:
    """Rows grouped by family or version: how many, median and largest error, in the band."""
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[getattr(row, key)].append(row)
    lines = [f"| {key} | rows | median | largest | in the band |", "|---|---|---|---|---|"]
    for name, members in sorted(groups.items()):
        errors = [abs(row.error) for row in members]
        inside = sum(row.inside for row in members)
        lines.append(
            f"| {name} | {len(members)} | {statistics.median(errors):.2%} | {max(errors):.2%} "
            f"| {inside} of {len(members)} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    rows = [*pools("vllm_campaign"), *pools("vllm")]
    for key in ("family", "version"):
        print(table(rows, key), end="\n\n")
    for row in rows:
        print(f"{row.id} {row.model}: {row.predicted:.2f} ± {row.band:.2f}, "
              f"reported {row.reported:.2f} ({row.error:+.2%})")  # fmt: skip


if __name__ == "__main__":
    main()
