"""GGUF headers: as gguf-py writes them, in both byte orders, and as an enemy would."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.readers.gguf.header import Skipped, read_header
from kvplan.readers.gguf.types import TYPES
from kvplan.readers.ranges import FIRST_BYTES, LocalFile, Memory
from tests.readers.gguf_bytes import header, text, value


def written(path: Path, endianess: gguf.GGUFEndian) -> Path:
    """A small model as gguf-py writes it, with every kind of value."""
    writer = gguf.GGUFWriter(path, "llama", endianess=endianess)
    writer.add_block_count(2)
    writer.add_head_count([4, 8])
    writer.add_uint8("test.uint8", 200)
    writer.add_int8("test.int8", -3)
    writer.add_uint16("test.uint16", 60_000)
    writer.add_int16("test.int16", -30_000)
    writer.add_int32("test.int32", -5)
    writer.add_uint64("test.uint64", 1 << 40)
    writer.add_int64("test.int64", -(1 << 40))
    writer.add_float32("test.float32", 0.5)
    writer.add_float64("test.float64", 0.1)
    writer.add_bool("test.bool", True)
    writer.add_string("test.text", "höhe")
    writer.add_array("test.flags", [True, False])
    writer.add_token_list([f"token {n}" for n in range(20_000)])
    writer.add_tensor("token_embd.weight", np.zeros((16, 64), dtype=np.float32))
    writer.add_tensor("blk.0.attn_q.weight", np.zeros((8, 64), dtype=np.float16))
    packed = np.zeros((32, 2 * 34), dtype=np.uint8)
    writer.add_tensor("output.weight", packed, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("endianess", [gguf.GGUFEndian.LITTLE, gguf.GGUFEndian.BIG])
def test_reads_what_gguf_py_writes(tmp_path: Path, endianess: gguf.GGUFEndian) -> None:
    """Metadata, shapes, types, offsets and bytes are those of gguf-py's own reader."""
    path = written(tmp_path / "model.gguf", endianess)
    expected, actual = gguf.GGUFReader(path), read_header(LocalFile(path))

    assert {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "llama.attention.head_count": (4, 8),
        "test.uint8": 200,
        "test.int8": -3,
        "test.uint16": 60_000,
        "test.int16": -30_000,
        "test.int32": -5,
        "test.uint64": 1 << 40,
        "test.int64": -(1 << 40),
        "test.float32": 0.5,
        "test.float64": 0.1,
        "test.bool": True,
        "test.text": "höhe",
        "test.flags": (True, False),
        "tokenizer.ggml.tokens": Skipped(20_000),
    } == actual.metadata
    assert [
        (t.name, tuple(map(int, t.shape)), t.tensor_type.name, int(t.n_bytes), int(t.data_offset))
        for t in expected.tensors
    ] == [
        (t.name, t.shape, t.type.name, t.num_bytes, t.offset + actual.data_offset)
        for t in actual.tensors
    ]
    assert (endianess == gguf.GGUFEndian.BIG) == actual.big_endian


def test_types_are_those_of_gguf_py() -> None:
    """Name, elements and bytes of a block of every type that gguf-py knows."""
    expected = {
        kind.value: (kind.name, *gguf.GGML_QUANT_SIZES[kind]) for kind in gguf.GGML_QUANT_SIZES
    }

    assert expected == {number: tuple(kind) for number, kind in TYPES.items()}


def test_only_the_header_is_read(tmp_path: Path) -> None:
    """A file of a gigabyte whose header is small costs one read of 64 KiB."""
    data = header({"a": 1}, [("w", (1 << 28,), 0, 0)])
    path = tmp_path / "large.gguf"
    with path.open("wb") as file:
        file.write(data)
        file.truncate((1 << 30) + 1024)
    source = LocalFile(path, limit=FIRST_BYTES)

    assert 1 << 30 == read_header(source).tensors[0].num_bytes


def test_version_2_and_nested_arrays() -> None:
    """Version 2 has the layout of 3; arrays within arrays are stepped over."""
    inner = struct.pack("<IQ", 4, 2) + struct.pack("<II", 1, 2)
    nested = struct.pack("<IIQ", 9, 9, 2) + inner * 2
    found = read_header(Memory(header([("nested", nested), ("after", 7)], version=2)))

    assert {"nested": Skipped(2), "after": 7} == found.metadata


def array(kind: int, count: int, rest: bytes = b"") -> bytes:
    return struct.pack("<IIQ", 9, kind, count) + rest


def deep(levels: int) -> bytes:
    head = struct.pack("<I", 9)
    return head + struct.pack("<IQ", 9, 1) * levels + struct.pack("<IQ", 4, 0)


ONE = ("w", (32,), 0, 0)
HUGE = (1 << 64) - 1

HOSTILE: list[tuple[str, bytes, str]] = [
    ("empty", b"", "cut short: its header needs 4 bytes and the file has 0"),
    ("no magic", b"PK\x03\x04" * 9, "is not a GGUF file: it begins with b'PK"),
    ("version 1", header({}, version=1), "GGUF version 1; versions 2 and 3 are read"),
    ("version 0", header({}, version=0), "GGUF version 0;"),
    ("version 9", header({}, version=9), "GGUF version 9;"),
    ("counts cut off", header({})[:20], "cut short: its header needs 24 bytes"),
    ("huge key count", header({}, num_keys=HUGE), r"\(as a signed number -1\); at most 4,096"),
    ("wrapped tensor count", header({}, num_tensors=-5), "as a signed number -5"),
    ("more keys than bytes", header({}, num_keys=4000), "claims 4,000 metadata keys, which need"),
    ("more tensors than bytes", header({}, num_tensors=30_000), "30,000 tensors, which need"),
    ("key twice", header([("a", 1), ("a", 2)]), "has the key 'a' twice"),
    ("tensor twice", header({}, [ONE, ("w", (32,), 0, 128)]) + b"\0" * 512, "tensor 'w' twice"),
    ("key not text", header([("a", 1)]).replace(b"\1" + b"\0" * 7 + b"a",
     b"\1" + b"\0" * 7 + b"\xff"), "name of a key of memory is not UTF-8"),
    ("endless key", header([("k" * 2000, 1)]), "claims 2,000 bytes in the name of a key"),
    ("endless text", header([("a", struct.pack("<IQ", 8, HUGE))]), "bytes in a text"),
    ("unknown value type", header([("a", struct.pack("<I", 99))]), "has the unknown type 99"),
    ("array of unknowns", header([("a", array(77, 0))]), "an array of unknown type 77"),
    ("endless numbers", header([("a", array(0, 1 << 40))]), "elements in an array"),
    ("endless texts", header([("a", array(8, 1 << 40))]), "elements in an array"),
    ("nested too deep", header([("a", deep(6))]), "is an array deeper than 4"),
    ("millions of empty texts", header([("a", array(8, 3 << 20, bytes(24 << 20)))]),
     "more than 2,097,152 texts"),
    ("millions of empty arrays", header([("a", array(9, 1 << 20, bytes(12 << 20)))]),
     "more than 2,097,152 texts"),
    ("a text beyond the end", header([("a", array(8, 2, text("x") + struct.pack("<Q", 1 << 50)
     + bytes(64)))]), "cut short: its header needs"),
    ("no dimensions", header({}, [("w", (), 0, 0)]), "has 0 dimensions"),
    ("five dimensions", header({}, [("w", (1,) * 5, 0, 0)]), "has 5 dimensions"),
    ("dimension 0", header({}, [("w", (32, 0), 0, 0)]), r"has the shape \(32, 0\)"),
    ("overflowing shape", header({}, [("w", (1 << 32, 1 << 32), 0, 0)]), "has the shape"),
    ("type given up", header({}, [("w", (32,), 4, 0)]), "type 4 .Q4_2, which ggml gave up"),
    ("unknown type", header({}, [("w", (32,), 999, 0)]), "type 999 .unknown"),
    ("half a block", header({}, [("w", (48,), 8, 0)]), "not whole blocks of Q8_0"),
    ("data beyond the end", header({}, [ONE]), "cut short: its tensors end at byte"),
    ("unaligned data", header({}, [("w", (32,), 0, 5)]) + bytes(999), "not aligned to 32"),
    ("overlapping data", header({}, [ONE, ("v", (32,), 0, 64)]) + bytes(999), "inside another"),
    ("alignment 3", header({"general.alignment": 3}), "is 3, not a power of two"),
    ("alignment 0", header({"general.alignment": 0}), "is 0, not a power of two"),
    ("alignment as text", header({"general.alignment": "32"}), "is 32, not a power of two"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "said"), [row[1:] for row in HOSTILE], ids=[h[0] for h in HOSTILE]
)
def test_hostile_headers_are_a_sentence(data: bytes, said: str) -> None:
    """Whatever a header claims: one sentence, within a second."""
    began = time.perf_counter()
    with pytest.raises(BadFile, match=said) as caught:
        read_header(Memory(data))

    assert time.perf_counter() - began < 1
    assert "\n" not in caught.value.message


def test_the_most_wasteful_header_stays_small() -> None:
    """As many keys, arrays and tensors as are read at all: well below 200 MB of objects."""
    rows: list[tuple[str, Any]] = [(f"k{n}", "x" * 4096) for n in range(3000)]
    rows += [(f"a{n}", [n] * 8000) for n in range(100)]
    data = header(rows, [(f"t{n}", (32,), 0, 128 * n) for n in range(1 << 15)])
    source = Memory(data, size=1 << 40)
    tracemalloc.start()
    read_header(source)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 150 << 20


def test_a_header_larger_than_any_is_not_read() -> None:
    """A vocabulary of more than 64 MiB ends the reading, not the memory."""
    data = header([("a", array(8, 64, b""))]) + (struct.pack("<Q", 1 << 20) + bytes(1 << 20)) * 64
    with pytest.raises(BadFile, match=r"claims .* bytes or more; at most 64 MiB are read"):
        read_header(Memory(data, size=1 << 40))


def test_values_of_a_hand_made_file() -> None:
    """The builder of these tests writes what the reader reads."""
    found = read_header(Memory(header({"a": -1, "b": 0.25, "c": False, "d": "x", "e": [1, 2]})))

    assert {"a": -1, "b": 0.25, "c": False, "d": "x", "e": (1, 2)} == found.metadata
    assert struct.pack("<Iq", 11, 5) == value(5)


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [
        ("absent.gguf", SourceUnreachable, "There is no file"),
        (".", BadFile, "is not a file"),
        ("a\0b", SourceUnreachable, "its path is not one"),
        ("n" * 5000, SourceUnreachable, "cannot be read"),
    ],
)
def test_paths_that_are_no_file(
    tmp_path: Path, name: str, error: type[Exception], said: str
) -> None:
    """A path that does not lead to a file is a sentence too."""
    with pytest.raises(error, match=said):
        LocalFile(tmp_path / name)


def test_reads_beyond_the_limit_are_refused(tmp_path: Path) -> None:
    """All reads of a file together are bounded."""
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    source = LocalFile(path, limit=60)

    assert 50 == len(source.read(0, 50))
    with pytest.raises(BadFile, match="larger than a header can be"):
        source.read(50, 50)
