"""Checkpoints of safetensors files: what is stored, to the byte, beside what the config describes.

    model.safetensors                                one file
    model.safetensors.index.json + its shards        several; the index says which tensor is where
    any *.safetensors                                all that are there

Parameters stay those that the config's rule counts; the bytes are the headers'. Where the two speak
of different numbers of elements and nothing explains it, the model says so. The folder may be here
or on a hub: only headers are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.core.model import Model
from kvplan.core.weights import Measured, Weights
from kvplan.readers.folders import Folder, LocalFolder
from kvplan.readers.safetensors_header import (
    MAX_JSON_BYTES,
    Stored,
    parse_tensor_json,
    read_safetensors_header,
)

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
MAX_FILES = 2048

# Types that hold one parameter an element; others pack several or are a quantisation's.
PLAIN_TYPES = {"F64", "F32", "F16", "BF16"}
# Endings of tensors that a checkpoint may hold and that are no parameters.
BUFFERS = (
    "inv_freq", "position_ids", "masked_bias", "attn.bias", "attention.bias", "num_batches_tracked",
    "running_mean", "running_var", "relative_position_index", "rotary_emb.cos", "rotary_emb.sin",
)  # fmt: skip


class Checkpoint(NamedTuple):
    """The tensors of all files, their bytes, and what is odd about them.

    ``tensors`` is empty where only the index was there and ``num_bytes`` is its word.
    """

    tensors: Mapping[str, Stored]
    num_bytes: int
    num_files: int
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Where the bytes are known from."""
        if not self.tensors:
            return f"total_size of the index of {self.num_files:,} files: {self.num_bytes:,} bytes"
        sizes: dict[str, int] = {}
        for stored in self.tensors.values():
            sizes[stored.dtype] = sizes.get(stored.dtype, 0) + stored.num_bytes
        said = ", ".join(f"{kind} {size:,}" for kind, size in sorted(sizes.items()))
        files = "file" if self.num_files == 1 else "files"
        return f"headers of {self.num_files:,} {files}: {self.num_bytes:,} bytes ({said})"

    def elements(self, depth: int) -> int:
        """Elements, without buffers and without the blocks after the first ``depth``."""
        return sum(
            stored.elements
            for name, stored in self.tensors.items()
            if not name.endswith(BUFFERS) and not _drafts(name, depth)
        )

    @property
    def is_plain(self) -> bool:
        """Whether every element is one parameter."""
        return all(stored.dtype in PLAIN_TYPES for stored in self.tensors.values())


def with_exact_weights(model: Model, place: Path | Folder) -> Model:
    """The same model with the bytes that its files hold, and what does not fit its config."""
    found = read_checkpoint(place)
    weights = replace(
        model.weights or _uncounted(found),
        storage=Measured(found.num_bytes, found.source),
    )
    notes = found.notes + _difference(model, found)
    return replace(model, weights=weights, warnings=model.warnings + notes)


def read_checkpoint(place: Path | Folder) -> Checkpoint:
    """The stored tensors of a file, an index or a folder.

    Raises:
        BadFile: damaged, or shards that are not what the index says.
        SourceUnreachable: no such file, or a folder that does not answer.
    """
    if not isinstance(place, Path):
        return _folder(place, INDEX)
    if place.name.endswith(".safetensors"):
        return _files(LocalFolder(place.parent), [place.name])
    index = place.name if place.name.endswith(".index.json") else INDEX
    return _folder(LocalFolder(_folder_of(place)), index)


def has_tensors(folder: Folder) -> bool:
    """Whether a folder holds tensors that ``read_checkpoint`` would find."""
    if folder.read(INDEX, MAX_JSON_BYTES) is not None or folder.has(SINGLE):
        return True
    return bool(_loose(folder))


def _folder_of(path: Path) -> Path:
    """The folder itself, or that of a file."""
    if path.is_dir():
        return path
    if not path.exists():
        raise SourceUnreachable(f"There is no file or folder {path}.")
    return path.parent


def _folder(folder: Folder, index: str) -> Checkpoint:
    """The tensors of a folder: those of its index, of its one file, of any."""
    data = folder.read(index, MAX_JSON_BYTES)
    if data is not None:
        return _indexed(folder, index, data)
    names = [SINGLE] if folder.has(SINGLE) else _loose(folder)
    if not names:
        raise BadFile(f"The folder {folder.address} has no .safetensors file.")
    return _files(folder, names)


def _loose(folder: Folder) -> list[str]:
    """The files of tensors that no index orders."""
    return [n for n in folder.names() if n.endswith(".safetensors") and "/" not in n]


def _files(folder: Folder, names: list[str]) -> Checkpoint:
    """The tensors of some files together."""
    if len(names) > MAX_FILES:
        raise BadFile(
            f"{folder.address} has {len(names):,} files of tensors; {MAX_FILES:,} are read."
        )
    headers = folder.each(lambda name: read_safetensors_header(folder.open(name)), names)
    tensors: dict[str, Stored] = {}
    for name, part in zip(names, headers, strict=True):
        twice = tensors.keys() & part.keys()
        if twice:
            raise BadFile(f"The tensor {min(twice)[:80]!r} is in {name} and in another file.")
        tensors |= part
    num_bytes = sum(stored.num_bytes for stored in tensors.values())
    return Checkpoint(tensors, num_bytes, len(names))


def _indexed(folder: Folder, name: str, data: bytes) -> Checkpoint:
    """The shards that an index names, held against it; its own word where none of them is there."""
    index = f"{folder.address}/{name}"
    raw = parse_tensor_json(data, index)
    weight_map = raw.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadFile(f"{index} has no weight_map.")
    names = sorted({_shard(index, shard) for shard in weight_map.values()})
    total = _total_size(index, raw)
    absent = _absent(folder, names)
    if len(absent) == len(names) and total is not None:
        note = f"None of the {len(names)} files of {name} is here: bytes are its total_size."
        return Checkpoint({}, total, len(names), (note,))
    if absent:
        raise SourceUnreachable(
            f"{len(absent)} of {len(names)} files of {index} are absent, {absent[0][:80]} first."
        )
    found = _files(folder, names)
    lost = weight_map.keys() - found.tensors.keys()
    if lost:
        raise BadFile(f"{index} names the tensor {min(lost)[:80]!r}, which no file holds.")
    if total not in (None, found.num_bytes):
        note = f"{name} says {total:,} bytes, and its files hold {found.num_bytes:,}."
        return found._replace(notes=(note,))
    return found


def _absent(folder: Folder, names: list[str]) -> list[str]:
    """The shards that are not there."""
    if len(names) > MAX_FILES:
        raise BadFile(f"{folder.address} has {len(names):,} files of tensors.")
    there = folder.each(folder.has, names)
    return [name for name, found in zip(names, there, strict=True) if not found]


def _shard(index: str, name: object) -> str:
    """A file name of an index: plain, and of a file beside it."""
    plain = isinstance(name, str) and name.isprintable() and Path(name).name == name
    if not isinstance(name, str) or not plain or not name.endswith(".safetensors"):
        raise BadFile(f"{index} names {str(name)[:80]!r}, which is no file beside it.")
    return name


def _total_size(index: str, raw: Mapping[str, object]) -> int | None:
    """The bytes of all shards as the index has them."""
    metadata = raw.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, Mapping) else None
    if isinstance(total, float) and total.is_integer():
        total = int(total)
    if total is None:
        return None
    if not isinstance(total, int) or not 0 <= total <= 1 << 60:
        raise BadFile(f"The total_size of {index} is no number of bytes.")
    return total


def _uncounted(found: Checkpoint) -> Weights:
    """Weights of which only the stored elements are known."""
    elements = sum(stored.elements for stored in found.tensors.values())
    return Weights(
        tensors=(),
        parameters=elements,
        active_parameters=elements,
        storage=Measured(found.num_bytes, found.source),
    )


def _drafts(name: str, depth: int) -> bool:
    """Whether a tensor is of a block that drafts: named so, or after the config's last."""
    if name.startswith(("mtp.", "model.mtp")):
        return True
    place = name.removeprefix("model.layers.").split(".", 1)[0]
    return name.startswith("model.layers.") and place.isdecimal() and int(place[:9]) >= depth


def _difference(model: Model, found: Checkpoint) -> tuple[str, ...]:
    """A note where the files hold another number of parameters than the config describes.

    A head that is tied and stored all the same, or one that is neither, is the embedding's size.
    """
    if model.weights is None or not found.tensors or not found.is_plain:
        return ()
    stored, counted = found.elements(len(model.blocks)), model.weights.parameters
    table = (model.vocab_size or 0) * (model.hidden_size or 0)
    if stored in (counted, counted + table):
        return ()
    said = f"The files hold {stored:,} parameters and the config describes {counted:,}"
    return (f"{said}: {stored - counted:+,}.",)
