"""Logs in the wordings of llama.cpp and ik_llama.cpp, written from what a report states.

The form of the lines follows the report: "KV self size" to early 2025, "size = … cells" since. Where
two forms would state the same, the report's own function name decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kvplan.core.units import MIB

Row = Mapping[str, Any]
KINDS = {"attention": "", "non-SWA": "", "SWA": "swa_"}


def mib(value: float) -> int:
    return round(value * MIB)


def log_of(row: Row) -> str:
    return (
        "\n".join((*_model(row), *_context(row), *_caches(row), *_buffers(row), *_draft(row), ""))
        + "\n"
    )


def expected(row: Row) -> dict[tuple[str, str | None], Any]:
    """The facts by name and device."""
    wanted: dict[tuple[str, str | None], Any] = {
        (name, None): value for name, value in _plain(row) if value is not None
    }
    for key, name in (("kv_buffer_mib", "kv"), ("rs_buffer_mib", "recurrent"),
                      ("model_buffer_mib", "model"), ("compute_buffer_mib", "compute"),
                      ("output_buffer_mib", "output")):  # fmt: skip
        swa = "swa_" if name == "kv" and row["kv_lines"] and _kinds(row) == ["SWA"] else ""
        for device, size in _devices(row, key):
            wanted[f"{swa}{name}_buffer_bytes", device] = mib(size)
    return wanted


def _kinds(row: Row) -> list[str]:
    return [line["kind"] for line in row["kv_lines"] or [] if line["kind"] != "recurrent"]


def _devices(row: Row, key: str) -> list[tuple[str, float]]:
    found = row[key] or {}
    return [(name.removesuffix(" model").replace(" ", "_"), size) for name, size in found.items()]


def _plain(row: Row) -> Iterator[tuple[str, Any]]:
    for key, name in (("n_ctx_train", "trained_context_tokens"), ("n_layer", "num_layers"),
                      ("n_head_kv", "num_kv_heads"), ("n_embd_head_k", "key_dim"),
                      ("n_embd_head_v", "value_dim"), ("n_embd_k_gqa", "k_width"),
                      ("n_embd_v_gqa", "v_width"), ("n_ctx", "context_tokens"),
                      ("n_batch", "batch_tokens"), ("n_ubatch", "micro_batch_tokens"),
                      ("arch", "architecture")):  # fmt: skip
        if isinstance(row[key], int) or key == "arch":
            yield name, row[key]
    if row["kv_self_size_mib"] is not None:
        yield from _self_figures(row)
    for line in row["kv_lines"] or []:
        yield from _recurrent(line) if line["kind"] == "recurrent" else _attention(line)
    for line in row.get("draft_kv_lines") or []:
        yield "draft_kv_bytes", mib(line["size_mib"])
        yield "draft_kv_cells", line["cells"]


def _self_figures(row: Row) -> Iterator[tuple[str, Any]]:
    yield "kv_bytes", mib(row["kv_self_size_mib"])
    names = {"K": "k", "V": "v", "c^KV": "k", "kv^T": "v", "K^R": "k_rope"}
    for part in row["kv_self_parts"] or []:
        yield f"{names[part['part']]}_bytes", mib(part["mib"])
        yield f"{names[part['part']]}_type", part["type"]


def _attention(line: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    kind = KINDS[line["kind"]]
    if line["cells"] is None or line["layers"] is None:
        return
    sequences, _, streams = (line["seqs"] or "").partition("/")
    yield f"{kind}kv_bytes", mib(line["size_mib"])
    yield f"{kind}kv_cells", line["cells"]
    yield f"{kind}kv_layers", line["layers"]
    if sequences:
        yield f"{kind}kv_sequences", int(sequences)
        yield f"{kind}kv_streams", int(streams or 1)
        yield f"{kind}kv_tokens", line["cells"] * int(streams or 1)
    if line["k_type"]:
        yield f"{kind}k_bytes", mib(line["k_mib"])
        yield f"{kind}k_type", line["k_type"]
        yield f"{kind}v_bytes", mib(line["v_mib"])


def _recurrent(line: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    if line["cells"] is None:
        return
    yield "recurrent_state_bytes", mib(line["size_mib"])
    yield "state_slots", line["cells"]
    yield "state_snapshots", line["rs_seq"]
    if line["r_type"]:
        yield "conv_state_bytes", mib(line["r_mib"])
        yield "ssm_state_bytes", mib(line["s_mib"])


def _model(row: Row) -> Iterator[str]:
    old = row["kv_self_size_mib"] is not None
    printed = "llm_load_print_meta" if old else "print_info"
    build = (row["build"] or "").split(" and ")[0]
    if build[:1].isdecimal():
        build = build if "(" in build else f"{build} (abcdef01)"
        yield f"main: build = {build}" if old else f"build: {build} with gcc 13.2.0 for x86_64"
    yield (
        "llama_model_loader: loaded meta data with 33 key-value pairs and 236 tensors from "
        "/models/a.gguf (version GGUF V3 (latest))"
    )
    for name in ("arch", "n_ctx_train", "n_layer", "n_head", "n_head_kv", "n_embd_head_k",
                 "n_embd_head_v", "n_embd_k_gqa", "n_embd_v_gqa", "n_swa"):  # fmt: skip
        if row[name] is not None:
            yield f"{printed}: {name:<16} = {row[name]}"
    if row["model_name"]:
        yield f"{printed}: general.name     = {row['model_name']}"
    loads = "llm_load_tensors" if old else "load_tensors"
    if row["offloaded_layers"]:
        yield f"{loads}: offloaded {row['offloaded_layers']} layers to GPU"
    for device, size in _devices(row, "model_buffer_mib"):
        yield f"{loads}: {device:>12} {'' if old else 'model '}buffer size = {size:8.2f} MiB"


def _function(row: Row) -> str:
    return (
        "llama_new_context_with_model" if row["kv_self_size_mib"] is not None else "llama_context"
    )


def _context(row: Row) -> Iterator[str]:
    function = _function(row)
    for name in ("n_seq_max", "n_ctx", "n_batch", "n_ubatch", "flash_attn", "mla_attn",
                 "kv_unified"):  # fmt: skip
        if row[name] is not None:
            yield f"{function}: {name:<13} = {row[name]}"


def _caches(row: Row) -> Iterator[str]:
    if row["kv_self_size_mib"] is not None:
        yield from _kv_buffers(row, "llama_kv_cache_init")
        yield _self_size(row)
    elif not _kinds(row):
        yield from _kv_buffers(row, "llama_kv_cache")
    swa = [line["kind"] for line in row["kv_lines"] or [] if line["kind"] in ("SWA", "non-SWA")]
    for line in row["kv_lines"] or []:
        if line["kind"] == "recurrent":
            yield from _lines(row, "rs_buffer_mib", "llama_memory_recurrent", "RS")
            yield _recurrent_line(line)
            continue
        name = line.get("log_func") or "llama_kv_cache"
        if swa:
            title = "    SWA" if line["kind"] == "SWA" else "non-SWA"
            yield f"{name}_iswa: creating {title} KV cache, size = {line['cells']} cells"
        if len(swa) < 2 or line["kind"] == "non-SWA":
            yield from _kv_buffers(row, name)
        yield _cache_line(name, line)


def _draft(row: Row) -> Iterator[str]:
    for line in row.get("draft_kv_lines") or []:
        yield "srv    load_model: creating MTP draft context against the target model 'a.gguf'"
        yield _cache_line("llama_kv_cache", line)


def _kv_buffers(row: Row, function: str) -> Iterator[str]:
    yield from _lines(row, "kv_buffer_mib", function, "KV")


def _lines(row: Row, key: str, function: str, kind: str) -> Iterator[str]:
    for device, size in _devices(row, key):
        yield f"{function}: {device:>10} {kind} buffer size = {size:8.2f} MiB"


def _self_size(row: Row) -> str:
    parts = [f"{p['part']} ({p['type']}): {p['mib']:7.2f} MiB" for p in row["kv_self_parts"] or []]
    if row["kv_t_not_used"]:
        parts.append("kv^T: not used")
    total = f"KV self size  = {row['kv_self_size_mib']:7.2f} MiB"
    return f"{_function(row)}: {', '.join([total, *parts])}"


def _cache_line(name: str, line: Mapping[str, Any]) -> str:
    cells, layers = line["cells"], line["layers"]
    if cells is None or layers is None:
        return f"{name}: size = {line['size_mib']:7.2f} MiB"
    seqs = ""
    if line["seqs"]:
        first, slash, second = line["seqs"].partition("/")
        seqs = f", {int(first):2d}{slash}{f'{int(second):2d}' if second else ''} seqs"
    text = (
        f"{name}: size = {line['size_mib']:7.2f} MiB ({cells:6d} cells, {layers:3d} layers{seqs})"
    )
    if line["k_type"]:
        text += f", K ({line['k_type']}): {line['k_mib']:7.2f} MiB"
        text += f", V ({line['v_type']}): {line['v_mib']:7.2f} MiB"
    return text


def _recurrent_line(line: Mapping[str, Any]) -> str:
    size = f"llama_memory_recurrent: size = {line['size_mib']:7.2f} MiB"
    if line["cells"] is None:
        return size
    snapshots = f" {line['rs_seq']:2d} rs_seq" if line["rs_seq"] is not None else ""
    text = (
        f"{size} ({line['cells']:6d} cells, {line['layers']:3d} layers, "
        f"{int(line['seqs'] or 1):2d} seqs{snapshots})"
    )
    if line["r_type"]:
        text += f", R (f32): {line['r_mib']:7.2f} MiB, S (f32): {line['s_mib']:7.2f} MiB"
    return text


def _buffers(row: Row) -> Iterator[str]:
    function = _function(row) if row["kv_self_size_mib"] is not None else "sched_reserve"
    for device, size in _devices(row, "output_buffer_mib"):
        yield f"{_function(row)}: {device:>10}  output buffer size = {size:8.2f} MiB"
    for device, size in _devices(row, "compute_buffer_mib"):
        yield f"{function}: {device:>10} compute buffer size = {size:8.2f} MiB"
