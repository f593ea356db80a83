"""The lines of caches: what a build of any age says of one.

    llama_kv_cache_iswa: creating     SWA KV cache, size = 1024 cells
    llama_kv_cache: size = 48.00 MiB (  1024 cells,  12 layers,  4/1 seqs), K (f16): …, V (f16): …
    llama_memory_recurrent: size = 251.25 MiB (     4 cells,  40 layers,  4 seqs), R (f32): …, S …
    llama_context: KV self size  = 1166.62 MiB, c^KV (q8_0): 1166.62 MiB, kv^T: not used

``A/B seqs`` are sequences and streams, and cells are a stream's; one number is of the time when all
sequences shared one. A cache that is not the main one has a prefix (src/llama-kv-cache*.cpp,
llama-memory-recurrent.cpp, b11434; ik_llama.cpp, src/llama.cpp).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kvplan.logs import numbers
from kvplan.logs.facts import Value

_NUMBER = r"-?[\d.,]{1,24}"
CREATING: Final = re.compile(r"creating {1,9}([\w -]{0,40}?) ?KV cache")
_SIZE = re.compile(
    rf"(\w{{1,60}}): size = {{1,9}}({_NUMBER}) MiB \( {{0,9}}(\d{{1,15}}) cells"
    r", {0,9}(\d{1,9}) layers(?:, {0,9}(\d{1,9})(?:/ {0,9}(\d{1,9}))?(?: seqs)?)?"
    r"(?: {1,9}(\d{1,9}) rs_seq)?"
)
_SELF = re.compile(rf"KV self size {{1,9}}= {{1,9}}({_NUMBER}) MiB")
_INDEXER = re.compile(rf"KV self indexer size = {{1,9}}({_NUMBER}) MiB")
_PART = re.compile(rf"([\w^-]{{1,8}}) \((\w{{1,16}})\): {{0,9}}({_NUMBER}) MiB")

# Names of caches that other words than "non-SWA" and "main" announce.
KINDS: Final = {
    "SWA": "swa_",
    "indexer": "indexer_",
    "DSV4 lightning-indexer": "indexer_",
    "DSV4 CSA compressed": "csa_",
    "DSV4 HCA compressed": "hca_",
}
_PARTS: Final = {
    "K": "k",
    "V": "v",
    "c^KV": "k",
    "kv^T": "v",
    "K-only": "k",
    "K^R": "k_rope",
    "R": "conv_state",
    "S": "ssm_state",
    "P": "third_state",
}


def cache(text: str, kind: str) -> dict[str, Value] | None:
    """A cache by its line, None where it is none; ``kind`` is what it was announced as."""
    found = _SIZE.search(text)
    if not found:
        return _self(text)
    if found[1] == "llama_memory_recurrent":
        return dict(_recurrent(text, found))
    return dict(_attention(text, found, kind))


def _attention(text: str, found: re.Match[str], kind: str) -> Iterator[tuple[str, Value]]:
    cells, streams = int(found[3]), int(found[6] or 1)
    yield f"{kind}kv_bytes", _mib(found[2])
    yield f"{kind}kv_cells", cells
    yield f"{kind}kv_layers", int(found[4])
    if found[5]:
        yield f"{kind}kv_sequences", int(found[5])
        yield f"{kind}kv_streams", streams
        yield f"{kind}kv_tokens", cells * streams
    for name, value in _parts(text[found.end() :]):
        yield f"{kind}{name}", value


def _recurrent(text: str, found: re.Match[str]) -> Iterator[tuple[str, Value]]:
    yield "recurrent_state_bytes", _mib(found[2])
    yield "state_slots", int(found[3])
    if found[5]:
        yield "state_sequences", int(found[5])
    if found[7]:
        yield "state_snapshots", int(found[7])
    yield from _parts(text[found.end() :])


def _self(text: str) -> dict[str, Value] | None:
    """The line of builds to May 2025 and of ik_llama.cpp."""
    if indexer := _INDEXER.search(text):
        return {"indexer_kv_bytes": _mib(indexer[1])}
    found = _SELF.search(text)
    if not found:
        return None
    figures: dict[str, Value] = {"kv_bytes": _mib(found[1]), **dict(_parts(text[found.end() :]))}
    if "c^KV" in text:
        figures["latent_cache"] = "c^KV" if "kv^T (" not in text else "c^KV and kv^T"
    if "not used" in text:
        figures["v_bytes"] = 0
    return figures


def _parts(text: str) -> Iterator[tuple[str, Value]]:
    for part, kind, size in _PART.findall(text[:400]):
        if name := _PARTS.get(part):
            yield f"{name}_bytes", _mib(size)
            yield f"{name}_type", kind


def _mib(text: str) -> int:
    return numbers.size(f"{text} MiB") or 0
