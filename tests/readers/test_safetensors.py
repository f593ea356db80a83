"""safetensors: as the safetensors package writes them, in folders, and as an enemy would."""

from __future__ import annotations

import json
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.readers.open_model import open_model
from kvplan.readers.ranges import LocalFile, Memory
from kvplan.readers.safetensors import read_checkpoint
from kvplan.readers.safetensors_header import BITS, read_safetensors_header

LLAMA = {
    "model_type": "llama",
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "vocab_size": 32,
}
PARAMETERS = 2 * 32 * 8 + 4 * 8 * 8 + 3 * 8 * 16 + 3 * 8


def tensors(dtype: Any = np.float16) -> dict[str, np.ndarray]:
    """All tensors of the small Llama."""
    shapes = {"input_layernorm": (8,), "post_attention_layernorm": (8,)}
    shapes |= {f"self_attn.{name}_proj": (8, 8) for name in "qkvo"}
    shapes |= {"mlp.gate_proj": (16, 8), "mlp.up_proj": (16, 8), "mlp.down_proj": (8, 16)}
    found = {f"model.layers.0.{name}.weight": shape for name, shape in shapes.items()}
    found |= {"model.embed_tokens.weight": (32, 8), "lm_head.weight": (32, 8)}
    found["model.norm.weight"] = (8,)
    return {name: np.zeros(shape, dtype=dtype) for name, shape in found.items()}


def checkpoint(folder: Path, stored: dict[str, np.ndarray], **config: Any) -> Path:
    (folder / "config.json").write_text(json.dumps(LLAMA | config))
    save_file(stored, folder / "model.safetensors")
    return folder


def sharded(folder: Path, total_size: Any, **extra: str) -> Path:
    """The small Llama in two files with their index."""
    (folder / "config.json").write_text(json.dumps(LLAMA))
    weight_map = {}
    for place, name in enumerate(("model-00001-of-2.safetensors", "model-00002-of-2.safetensors")):
        share = dict(sorted(tensors().items())[place::2])
        save_file(share, folder / name)
        weight_map |= dict.fromkeys(share, name)
    index = {"metadata": {"total_size": total_size}, "weight_map": weight_map | extra}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def test_reads_what_safetensors_writes(tmp_path: Path) -> None:
    """Types, elements and bytes of a file by the safetensors package."""
    kinds = (np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, np.bool_)
    stored = {str(np.dtype(kind)): np.zeros((3, 5), dtype=kind) for kind in kinds}
    save_file(stored, tmp_path / "a.safetensors", metadata={"format": "np"})
    found = read_safetensors_header(LocalFile(tmp_path / "a.safetensors"))

    assert {name: (15, array.nbytes) for name, array in stored.items()} == {
        name: (one.elements, one.num_bytes) for name, one in found.items()
    }
    assert ["BOOL", "F16", "F32", "F64", "I64", "I8", "U8"] == sorted(
        one.dtype for one in found.values()
    )


def test_a_folder_is_a_model_with_exact_bytes(tmp_path: Path) -> None:
    """Parameters by the config's rule, bytes by the headers, and nothing to remark."""
    found = open_model(checkpoint(tmp_path, tensors()))

    assert found.weights is not None
    assert (PARAMETERS, 2 * PARAMETERS) == (found.weights.parameters, found.weights.num_bytes)
    assert found.weights.exact_bytes
    assert () == found.warnings
    assert tmp_path.name == found.name
    assert found.layers() == open_model(tmp_path / "model.safetensors").layers()


@pytest.mark.parametrize(
    "extra",
    [
        {"model.layers.0.self_attn.rotary_emb.inv_freq": (4,)},
        {"model.layers.1.mlp.down_proj.weight": (8, 16)},
        {"mtp.layers.0.norm.weight": (8,)},
    ],
)
def test_what_is_stored_besides_is_explained(tmp_path: Path, extra: dict[str, Any]) -> None:
    """Buffers and blocks for drafting take bytes and are no difference."""
    more = {name: np.zeros(shape, np.float16) for name, shape in extra.items()}
    found = open_model(checkpoint(tmp_path, tensors() | more))

    assert found.weights is not None
    assert () == found.warnings
    assert found.weights.num_bytes > 2 * PARAMETERS


def test_a_tied_head_that_is_stored_is_explained(tmp_path: Path) -> None:
    """Some checkpoints hold the head beside the embedding that it is."""
    assert () == open_model(checkpoint(tmp_path, tensors(), tie_word_embeddings=True)).warnings


def test_packed_types_are_no_difference(tmp_path: Path) -> None:
    """Elements of 8 bits or packed integers are not held against the parameters."""
    found = open_model(checkpoint(tmp_path, tensors(np.int32)))

    assert found.weights is not None
    assert () == found.warnings
    assert 4 * PARAMETERS == found.weights.num_bytes


def test_another_number_of_parameters_is_said(tmp_path: Path) -> None:
    """Files of another model than the config's."""
    found = open_model(checkpoint(tmp_path, tensors(), intermediate_size=17))

    described = f"{PARAMETERS:,} parameters and the config describes {PARAMETERS + 24:,}"
    assert (f"The files hold {described}: -24.",) == found.warnings


def test_shards_and_their_index(tmp_path: Path) -> None:
    """The bytes of all shards; an index that says otherwise is quoted."""
    right = open_model(sharded(tmp_path, 2 * PARAMETERS))
    wrong = open_model(sharded(tmp_path, 999))

    assert right.weights == wrong.weights
    assert right.weights is not None
    assert 2 * PARAMETERS == right.weights.num_bytes
    assert () == right.warnings
    assert f"says 999 bytes, and its files hold {2 * PARAMETERS:,}" in wrong.warnings[0]


def test_an_index_alone(tmp_path: Path) -> None:
    """Without any shard the index's total_size is all there is."""
    folder = sharded(tmp_path, 2 * PARAMETERS)
    for path in folder.glob("*.safetensors"):
        path.unlink()
    found = open_model(folder)

    assert found.weights is not None
    assert 2 * PARAMETERS == found.weights.num_bytes
    assert "bytes are its total_size" in found.warnings[0]


def test_shards_that_are_lost(tmp_path: Path) -> None:
    """A shard that is absent, a tensor that no shard holds, a name that leaves the folder."""
    folder = sharded(tmp_path, 0, lost="model-00001-of-2.safetensors")
    with pytest.raises(BadFile, match="names the tensor 'lost', which no file holds"):
        open_model(folder)
    with pytest.raises(BadFile, match=r"names '\.\./x\.safetensors', which is no file beside it"):
        open_model(sharded(tmp_path, 0, out="../x.safetensors"))
    with pytest.raises(SourceUnreachable, match=r"1 of 3 files .* are absent, z\.safetensors"):
        open_model(sharded(tmp_path, 0, out="z.safetensors"))


def test_weights_alone(tmp_path: Path) -> None:
    """Without a config: elements and bytes."""
    save_file({"a": np.zeros(7, np.float32)}, tmp_path / "a.safetensors")
    found = read_checkpoint(tmp_path)

    assert (7, 28) == (found.elements(0), found.num_bytes)
    assert "headers of 1 file: 28 bytes (F32 28)" == found.source
    with pytest.raises(BadFile, match=r"has no config\.json"):
        open_model(tmp_path)
    with pytest.raises(BadFile, match=r"holds tensors and no geometry"):
        open_model(tmp_path / "a.safetensors")


def file(header: Any, data: int = 0, length: int | None = None) -> bytes:
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(body) if length is None else length) + body + bytes(data)


def entry(dtype: Any = "F16", shape: Any = (4,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


TWO = {
    "a": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]},
    "b": {"dtype": "U8", "shape": [4], "data_offsets": [3, 7]},
}

HOSTILE: list[tuple[str, bytes, str]] = [
    ("empty", b"", "cut short: its header needs 8 bytes"),
    ("text", b"<html> not a checkpoint", "is no safetensors file, or a damaged one"),
    ("endless header", file({}, length=1 << 60), "claims a header of 1,152,921,504,606,846,976"),
    ("header cut off", file(entry(), 8, length=500), "cut short: its header needs 508"),
    ("not JSON", file(b"{'w'"), "The header of memory is not JSON"),
    ("nested", file(b"[" * 100_000), "nested too deeply"),
    ("a list", file([]), "holds a list where an object of keys is needed"),
    ("no object", file({"w": 1}), "is described by no object"),
    ("twice", file(b'{"w": {}, "w": {}}'), "'w' is there twice"),
    ("no type", file({"w": {}}), "has the unknown type None"),
    ("odd type", file(entry("F12"), 8), "has the unknown type 'F12'"),
    ("type a list", file(entry([]), 8), r"has the unknown type \[\]"),
    ("negative", file(entry(shape=[-4]), 8), r"has the shape \[-4\]"),
    ("fraction", file(entry(shape=[4.5]), 8), r"has the shape \[4.5\]"),
    ("flag", file(entry(shape=[True, 4]), 8), r"has the shape \[True, 4\]"),
    ("huge", file(entry(shape=[1 << 40, 1 << 40]), 8), "has the shape"),
    ("many dimensions", file(entry(shape=[1] * 17), 8), "has the shape"),
    ("backwards", file(entry(offsets=[8, 0]), 8), r"lies at \[8, 0\]"),
    ("one offset", file(entry(offsets=[8]), 8), r"lies at \[8\]"),
    ("other bytes", file(entry(offsets=[0, 6]), 6), r"has 6 bytes of data, and .* needs 8"),
    ("overlap", file(TWO, 7), "overlap or leave a gap at byte 4"),
    ("gap", file(entry(offsets=[2, 10]), 10), "overlap or leave a gap at byte 0"),
    ("data cut off", file(entry(), 4), "cut short or too long: its tensors need 8 bytes"),
    ("data left over", file(entry(), 9), "cut short or too long"),
    ("many objects", file(b'{"a":[' + b"{}," * 2_000_000 + b"{}]}"), "more than 131,072 tensors"),
    ("many numbers", file(b'{"a":[' + b"1," * 4_000_000 + b"1]}"), "more than 131,072 tensors"),
    ("NaN", file(b'{"w": NaN}'), "holds NaN"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"), [row[1:] for row in HOSTILE], ids=[h[0] for h in HOSTILE]
)
def test_hostile_headers_are_a_sentence(data: bytes, said: str) -> None:
    """Whatever a header claims: one sentence, within a second."""
    began = time.perf_counter()
    with pytest.raises(BadFile, match=said) as caught:
        read_safetensors_header(Memory(data))

    assert time.perf_counter() - began < 1
    assert "\n" not in caught.value.message


@pytest.mark.parametrize("dtype", sorted(BITS))
def test_bits_of_every_type(dtype: str) -> None:
    """16 elements of a type take its bits."""
    size = 16 * BITS[dtype] // 8
    found = read_safetensors_header(Memory(file(entry(dtype, [16], [0, size]), size)))

    assert (16, size) == (found["w"].elements, found["w"].num_bytes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{}", "has no weight_map"),
        ('{"weight_map": {"a": 1}}', "names '1', which is no file beside it"),
        ('{"weight_map": {"a": "b.safetensors"}, "metadata": {"total_size": -1}}', "no number of"),
    ],
)
def test_bad_indices(tmp_path: Path, text: str, said: str) -> None:
    """An index that is none."""
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(BadFile, match=said):
        read_checkpoint(tmp_path)


def test_paths_without_tensors(tmp_path: Path) -> None:
    """Nothing there, or nothing in it."""
    with pytest.raises(SourceUnreachable, match="There is no file"):
        open_model(tmp_path / "absent")
    with pytest.raises(BadFile, match=r"has no \.safetensors file"):
        read_checkpoint(tmp_path)
