"""llama-server's flags that decide what it keeps and where (common/arg.cpp, b11434)."""

from __future__ import annotations

import re

from kvplan.core.errors import BadValue
from kvplan.core.formats import FORMATS, Format
from kvplan.engines.flags import Flag, FlagTable, size, whole, word

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
AUTO, ALL = -1, 1 << 20
MAX_DEVICES = 128


def cache_type(text: str) -> Format:
    """A type of ggml that a cache can have."""
    if text not in CACHE_TYPES:
        raise BadValue(f"{text[:40]!r} is not a cache type of ggml: {', '.join(CACHE_TYPES)}.")
    return FORMATS[text]


def on_off(text: str) -> str:
    """``on``, ``off`` or ``auto``, in the spellings that are taken."""
    known = {"on": "on", "1": "on", "true": "on", "enabled": "on", "auto": "auto", "-1": "auto",
             "off": "off", "0": "off", "false": "off", "disabled": "off"}  # fmt: skip
    if text.lower() not in known:
        raise BadValue(f"{text[:40]!r} is not on, off or auto.")
    return known[text.lower()]


def layers(text: str) -> int:
    """Layers on the cards: a number, ``auto`` or ``all``; below -1 is all."""
    if text == "auto":
        return AUTO
    if text == "all":
        return ALL
    if not re.fullmatch(r"-?\d{1,6}", text):
        raise BadValue(f"{text[:40]!r} is no number of layers, auto or all.")
    value = int(text)
    return ALL if value < AUTO else value


def slots(text: str) -> int:
    """Server slots; -1 is automatic."""
    return AUTO if text == "-1" else whole(1, 256)(text)


def shares(text: str) -> tuple[float, ...]:
    """Proportions of the cards: ``3,1`` or ``0.6/0.4``."""
    parts = re.split(r"[,/]+", text.strip())
    if not 1 <= len(parts) <= MAX_DEVICES:
        raise BadValue(f"{text[:40]!r} is no list of up to {MAX_DEVICES} proportions.")
    values = tuple(float(part) for part in parts)
    if not all(0 <= value < 1e9 for value in values) or not sum(values):
        raise BadValue(f"{text[:40]!r} has a proportion below 0, or nothing but zeros.")
    return values


def mebibytes(text: str) -> int:
    """Bytes from a number of MiB, the first of a list; or with a unit."""
    first = text.split(",", maxsplit=1)[0].strip()
    return int(first) << 20 if first.isdecimal() and len(first) < 9 else size(first)


def host_cache(text: str) -> int:
    """Bytes of the prompt cache in host memory; -1 for no limit."""
    return AUTO if text == "-1" else mebibytes(text)


FLAGS = FlagTable(
    "llama.cpp",
    (
        Flag(("--ctx-size", "-c"), whole(), "Cells of all slots together; 0: as trained."),
        Flag(("--parallel", "-np"), slots, "Server slots; -1: automatic."),
        Flag(("--kv-unified", "-kvu"), None, "One cache that all slots share."),
        Flag(("--no-kv-unified", "-no-kvu"), None, "A stream of its own for each slot."),
        Flag(("--cache-type-k", "-ctk"), cache_type, "Type of keys, as q8_0."),
        Flag(("--cache-type-v", "-ctv"), cache_type, "Type of values; below f16 with -fa."),
        Flag(("--batch-size", "-b"), whole(1, 1 << 24), "Logical batch."),
        Flag(("--ubatch-size", "-ub"), whole(1, 1 << 24), "Physical batch."),
        Flag(("--flash-attn", "-fa"), on_off, "on, off or auto."),
        Flag(("--swa-full",), None, "Windowed layers as long as the others."),
        Flag(("--n-gpu-layers", "--gpu-layers", "-ngl"), layers, "Layers on the cards."),
        Flag(("--tensor-split", "-ts"), shares, "Proportions of the cards, as 3,1."),
        Flag(
            ("--split-mode", "-sm"),
            word("none", "layer", "row", "tensor", "graph", "attn"),
            "How cards share the model.",
        ),
        Flag(("--main-gpu", "-mg"), whole(0, MAX_DEVICES), "The card of --split-mode none."),
        Flag(("--no-kv-offload", "-nkvo"), None, "Caches in host memory."),
        Flag(("--override-tensor", "-ot"), word(), "PATTERN=BUFFER, as exps=CPU."),
        Flag(("--cpu-moe", "-cmoe"), None, "All experts in host memory."),
        Flag(("--n-cpu-moe", "-ncmoe"), whole(0, 1 << 20), "Experts of the first N layers there."),
        Flag(("--no-mmap",), None, "Weights are read into memory, not mapped."),
        Flag(("--mlock",), None, "Keep host memory from being swapped."),
        Flag(("--fit", "-fit"), on_off, "Choose what was not given so that it fits."),
        Flag(("--fit-target", "-fitt"), mebibytes, "Left free on each card, in MiB."),
        Flag(("--fit-ctx", "-fitc"), whole(), "The least context that --fit may choose."),
        Flag(("--cache-ram", "-cram"), host_cache, "Prompt cache in host memory, in MiB."),
        Flag(
            ("--ctx-checkpoints", "--swa-checkpoints", "-ctxcp"), whole(), "A slot's checkpoints."
        ),
        Flag(("--spec-type",), word(), "Speculation; mtp and draft-mtp use the model's own block."),
        Flag(
            ("--spec-draft-n-max", "--draft-max", "--draft", "--draft-n"),
            whole(0, 1 << 16),
            "Tokens drafted at once: snapshots of a recurrent state.",
        ),
        Flag(("--quantization", "--file-type"), word(), "The file's type, as Q4_K_M."),
        Flag(("--mla-use", "-mla"), whole(0, 3), "ik_llama.cpp: the form of latent attention."),
        Flag(("--swa-compress",), None, "ik_llama.cpp: windows with cells of their own."),
        Flag(("--attention-max-batch", "-amb"), whole(), "ik_llama.cpp: MiB of attention scores."),
    ),
)
