"""Start-up reports of llama.cpp as questions: the model, the flags and the build that each states.

The model is the config of its name, or the geometry that the loader printed. A build that is not
stated is told by the form of the lines: "KV self size", "seqs", "seqs/streams".
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

import kvplan
from kvplan.engines.llamacpp.plan import LlamaPlan
from kvplan.engines.llamacpp.prints import mib
from tests.engines.aliases import CONFIGS, REPORTS, config_of

FORK_BUILDS = 4500  # ik_llama.cpp's commits had not reached it when these reports were made
BY_FORM = {"self": "b5000", "seqs": "b5600", "streams": "b9010", "none": "b11549"}
HALF_DIGIT = 0.0051
STATED = {
    "--batch-size": "n_batch",
    "--ubatch-size": "n_ubatch",
    "--cache-type-k": "cache_type_k",
    "--cache-type-v": "cache_type_v",
}


@dataclass(frozen=True)
class Row:
    """A report, what is assumed of it, and the question that it asks."""

    said: dict[str, Any]
    assumed: dict[str, Any]

    @property
    def id(self) -> str:
        """Stable."""
        return str(self.said["id"])

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The caches' lines."""
        return self.said["kv_lines"] or []

    @property
    def build(self) -> int | None:
        """The build, where a number is stated."""
        first = (self.said["build"] or "").split()[:1]
        return int(first[0]) if first and first[0].isdecimal() and int(first[0]) > 100 else None

    @property
    def fork(self) -> bool:
        """Whether ik_llama.cpp printed it."""
        upstream = self.lines or (self.build or 0) > FORK_BUILDS
        return self.said["engine"] == "ik_llama.cpp" and not upstream

    @property
    def form(self) -> str:
        """The form of its lines."""
        if self.said["kv_self_size_mib"]:
            return "self"
        marks = [line.get("seqs") or "" for line in self.lines if line["kind"] != "recurrent"]
        if any("/" in mark for mark in marks):
            return "streams"
        return "seqs" if any(marks) and not self.said["kv_unified"] else "none"

    @property
    def version(self) -> str:
        """The build that is asked."""
        if self.fork:
            return str(self.build or 3700)
        return f"b{self.build}" if self.build else BY_FORM[self.form]

    @property
    def model(self) -> Any:
        """A config's path, or the printed geometry as a config."""
        named = self.assumed.get("model")
        if named:
            return CONFIGS / named
        return config_of(self.said["model_name"]) or self.printed_geometry()

    def printed_geometry(self) -> dict[str, Any]:
        """Layers, heads and widths as the loader printed them."""
        said = self.said
        heads, dim = said["n_head"], said["n_embd_head_k"] or 128
        return {
            "model_type": "llama",
            "num_hidden_layers": said["n_layer"],
            "num_attention_heads": heads,
            "num_key_value_heads": said["n_head_kv"],
            "head_dim": dim,
            "hidden_size": heads * dim,
            "intermediate_size": 4 * heads * dim,
            "vocab_size": 32000,
            "max_position_embeddings": said["n_ctx_train"] or 4096,
        }

    @property
    def sequences(self) -> tuple[int, bool | None]:
        """Slots, and whether they share a cache."""
        said = self.said
        for line in self.lines:
            slots, _, streams = (line.get("seqs") or "").replace(" ", "").partition("/")
            if streams:
                return int(slots), int(streams) == 1
        return said["n_seq_max"] or 1, said["kv_unified"]

    @property
    def flags(self) -> dict[str, Any]:
        """The flags of the start."""
        said, found = self.said, {}
        slots, unified = self.sequences
        found["--parallel"] = slots
        if unified:
            found["--kv-unified"] = True
        context = said["n_ctx"] or self._cells()
        if context:
            found["--ctx-size"] = context
        found |= {flag: said[key] for flag, key in STATED.items() if said[key]}
        quantised = "q" in (said["cache_type_v"] or "")
        attention = said["flash_attn"]
        if attention is not None or quantised:
            off = attention in (0, "disabled", False) and not quantised
            found["--flash-attn"] = "off" if off else "on"
        if said["swa_full"]:
            found["--swa-full"] = True
        if self.fork:
            found["--mla-use"] = said["mla_attn"] or 0
        snapshots = [line["rs_seq"] for line in self.lines if line.get("rs_seq")]
        if snapshots:
            found |= {"--spec-draft-n-max": snapshots[0], "--spec-type": "draft-mtp"}
        return found | self.assumed.get("flags", {})

    def _cells(self) -> int:
        cells = [line["cells"] for line in self.lines if line["kind"] != "recurrent"]
        slots, unified = self.sequences
        if cells and cells[0]:
            return cells[0] * (1 if unified else slots)
        return (self.said["n_ctx_per_seq"] or 0) * slots

    def plan(self) -> LlamaPlan:
        """Kvplan's answer."""
        flags = {name.strip("-").replace("-", "_"): value for name, value in self.flags.items()}
        answer = kvplan.fit(
            self.model,
            gpu_memory="100TiB",
            engine="ik_llama.cpp" if self.fork else "llama.cpp",
            engine_version=self.version,
            n_gpu_layers="all",
            **flags,
        )
        assert isinstance(answer.plan, LlamaPlan)
        return answer.plan


@cache
def rows(status: str) -> list[Row]:
    """The rows of one verdict."""
    assumed = json.loads((REPORTS / "llamacpp_assumptions.json").read_text(encoding="utf-8"))
    lines = (REPORTS / "llamacpp.jsonl").read_text(encoding="utf-8").splitlines()
    found = [Row(row, assumed.get(row["id"], {})) for row in map(json.loads, lines)]
    return [row for row in found if row.said["check"]["status"] == status]


KINDS = {
    "attention": "attention",
    "non-SWA": "attention",
    "SWA": "window",
    "recurrent": "recurrent",
}


def misses(row: Row) -> list[str]:
    """Every printed figure that the plan has otherwise."""
    plan = row.plan()
    caches = {cache.name: cache for cache in plan.layout.caches.announced()}
    found: list[str] = []

    def hold(what: str, printed: float | None, mine: float) -> None:
        if printed is not None and abs(printed - mine) > HALF_DIGIT:
            found.append(f"{what}: {printed} printed, {mine} planned")

    said = row.said
    for line in row.lines:
        cache = caches.get(KINDS[line["kind"]])
        if cache is None:
            found.append(f"no {line['kind']} cache")
            continue
        size, layers = mib(cache.num_bytes), line["layers"]
        hold(f"{line['kind']} size", line["size_mib"], size)
        hold(f"{line['kind']} cells", line.get("cells"), cache.cells)
        hold(f"{line['kind']} layers", layers, cache.layers)
        first, second = ("r_mib", "s_mib") if line["kind"] == "recurrent" else ("k_mib", "v_mib")
        hold(first, line.get(first), mib(cache.k_bytes))
        hold(second, line.get(second), mib(cache.v_bytes))
    for line in said.get("draft_kv_lines") or []:
        hold("draft size", line["size_mib"], mib(caches["draft"].num_bytes))
        hold("draft layers", line["layers"], caches["draft"].layers)
    k = sum(cache.k_bytes for cache in caches.values())
    v = sum(cache.v_bytes for cache in caches.values())
    hold("self size", said["kv_self_size_mib"], mib(k + v))
    for part in said["kv_self_parts"] or []:
        hold(part["part"], part["mib"], mib(k if part["part"] in ("K", "c^KV") else v))
    states = caches.get("recurrent")
    attention = k + v - (states.num_bytes if states else 0)
    if [line["kind"] for line in row.lines] == ["SWA"]:  # the other half is not in the excerpt
        attention = caches["window"].num_bytes
    hold_buffers(row, "kv_buffer_mib", attention, found)
    hold_buffers(row, "rs_buffer_mib", states.num_bytes if states else 0, found)
    if said.get("swa_cells"):
        hold("window cells", said["swa_cells"], caches["window"].cells)
    return found


def hold_buffers(row: Row, key: str, mine: int, found: list[str]) -> None:
    """The devices' buffers together are the caches, but for a card's padding of quantised rows."""
    buffers = row.said[key] or {}
    if not buffers or "Meta()" in buffers:  # a split tensor's buffer is one device's
        return
    printed = sum(buffers.values())
    padding = 0.06 if "q" in str(row.said["cache_type_k"]) else 0.0
    if not -HALF_DIGIT * len(buffers) <= printed - mib(mine) <= HALF_DIGIT * len(buffers) + padding:
        found.append(f"{key}: {printed:.2f} printed, {mib(mine):.2f} planned")
