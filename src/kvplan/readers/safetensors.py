"""Checkpoints of safetensors files: what is stored, to the byte, beside what the config describes.

    model.safetensors                                one file
    model.safetensors.index.json + its shards        several; the index says which tensor is where
    any *.safetensors                                all that are there

Parameters stay those that the config's rule counts; the bytes are the headers'. Where the two speak
of different numbers of elements and nothing explains it, the model says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.core.model import Model
from kvplan.core.weights import Measured, Weights
from kvplan.readers.families.base import NO_OPTIONS, Options
from kvplan.readers.hf_config import read_config
from kvplan.readers.json_text import parse_object, read_bounded
from kvplan.readers.ranges import LocalFile
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


def read_safetensors(
    path: str | Path, *, name: str = "", source: str = "", options: Options = NO_OPTIONS
) -> Model:
    """The model of a folder with a config.json and safetensors files, or of one such file.

    Raises:
        BadFile: no config beside the tensors, or a file that is not what it claims to be.
        UnknownModelType: the config's type is not known.
        SourceUnreachable: a file cannot be read.
    """
    folder = _folder(Path(path))
    config = folder / "config.json"
    if not config.exists():
        raise BadFile(f"{folder} has tensors and no config.json, which says what they are.")
    raw = parse_object(read_bounded(config), str(config))
    model = read_config(
        raw, name=name or folder.resolve().name, source=source or str(config), options=options
    )
    return with_exact_weights(model, Path(path))


def with_exact_weights(model: Model, path: Path) -> Model:
    """The same model with the bytes that its files hold, and what does not fit its config."""
    found = read_checkpoint(path)
    weights = replace(
        model.weights or _uncounted(found),
        storage=Measured(found.num_bytes, found.source),
    )
    notes = found.notes + _difference(model, found)
    return replace(model, weights=weights, warnings=model.warnings + notes)


def read_safetensors_weights(path: str | Path) -> Weights:
    """What the tensors of a file or folder weigh, whatever they are: no config is read.

    Parameters are elements, which packed types hold several of.
    """
    return _uncounted(read_checkpoint(Path(path)))


def read_checkpoint(path: Path) -> Checkpoint:
    """The stored tensors of a file, an index or a folder.

    Raises:
        BadFile: damaged, or shards that are not what the index says.
        SourceUnreachable: no such file.
    """
    if path.name.endswith(".safetensors"):
        return _files(path.parent, [path.name])
    folder = _folder(path)
    index = path if path.name.endswith(".index.json") else folder / INDEX
    if index.exists():
        return _indexed(folder, index)
    if (folder / SINGLE).exists():
        return _files(folder, [SINGLE])
    names = sorted(file.name for file in folder.glob("*.safetensors"))
    if not names:
        raise BadFile(f"The folder {folder} has no .safetensors file.")
    return _files(folder, names)


def _folder(path: Path) -> Path:
    """The folder itself, or that of a file."""
    if path.is_dir():
        return path
    if not path.exists():
        raise SourceUnreachable(f"There is no file or folder {path}.")
    return path.parent


def _files(folder: Path, names: list[str]) -> Checkpoint:
    """The tensors of some files together."""
    if len(names) > MAX_FILES:
        raise BadFile(f"{folder} has {len(names):,} files of tensors; {MAX_FILES:,} are read.")
    tensors: dict[str, Stored] = {}
    for name in names:
        part = read_safetensors_header(LocalFile(folder / name))
        twice = tensors.keys() & part.keys()
        if twice:
            raise BadFile(f"The tensor {min(twice)[:80]!r} is in {name} and in another file.")
        tensors |= part
    num_bytes = sum(stored.num_bytes for stored in tensors.values())
    return Checkpoint(tensors, num_bytes, len(names))


def _indexed(folder: Path, index: Path) -> Checkpoint:
    """The shards that an index names, held against it; its own word where none of them is there."""
    raw = parse_tensor_json(read_bounded(index, MAX_JSON_BYTES), str(index))
    weight_map = raw.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise BadFile(f"{index} has no weight_map.")
    names = sorted({_shard(index, name) for name in weight_map.values()})
    total = _total_size(index, raw)
    absent = [name for name in names if not (folder / name).exists()]
    if len(absent) == len(names) and total is not None:
        note = f"None of the {len(names)} files of {index.name} is here: bytes are its total_size."
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
        note = f"{index.name} says {total:,} bytes, and its files hold {found.num_bytes:,}."
        return found._replace(notes=(note,))
    return found


def _shard(index: Path, name: object) -> str:
    """A file name of an index: plain, and of a file beside it."""
    if not isinstance(name, str) or Path(name).name != name or not name.endswith(".safetensors"):
        raise BadFile(f"{index} names {str(name)[:80]!r}, which is no file beside it.")
    return name


def _total_size(index: Path, raw: Mapping[str, object]) -> int | None:
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
