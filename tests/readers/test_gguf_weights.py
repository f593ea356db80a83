"""Weights of GGUF files: exact bytes, roles by name, experts that a token passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from kvplan.core import weights as w
from kvplan.core.errors import BadFile, SourceUnreachable
from kvplan.core.formats import FORMATS
from kvplan.core.weights import Weights
from kvplan.readers.gguf import read_gguf, read_gguf_weights
from kvplan.readers.ranges import Memory
from tests.readers.gguf_bytes import TensorRow, header

SMOLLM2 = Path(__file__).parent.parent / "reference/gguf/smollm2-135m-instruct-q4_1.header"
SMOLLM2_DATA_BYTES = 96_576_768
KEYS = {
    "general.architecture": "llama",
    "llama.block_count": 2,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
}
MIXTURE = {**KEYS, "llama.expert_count": 8, "llama.expert_used_count": 2}


def weights_of(
    rows: list[tuple[str, tuple[int, ...], int]], keys: dict[str, object] = MIXTURE
) -> Weights:
    """The weights of a file of these tensors, one after the other."""
    tensors: list[TensorRow] = []
    offset = 0
    for name, shape, kind in rows:
        tensors.append((name, shape, kind, offset))
        offset += 1 << 20
    found = read_gguf(Memory(header(keys, tensors), "test.gguf", size=1 << 40)).weights
    assert found is not None
    return found


def test_a_real_file() -> None:
    """SmolLM2-135M: parameters as transformers counts them, bytes as the tensors take."""
    data = SMOLLM2.read_bytes()
    found = read_gguf(Memory(data, "smollm2.gguf", len(data) + SMOLLM2_DATA_BYTES))

    assert found.weights is not None
    assert (134_515_008, SMOLLM2_DATA_BYTES) == (found.weights.parameters, found.weights.num_bytes)
    assert found.weights.exact_bytes
    assert "Smollm2 135M 8k Lc100K Mix1 Ep2" == found.name
    assert (8192, 49_152, 576) == (
        found.max_context_tokens,
        found.vocab_size,
        found.hidden_size,
    )
    assert 535 * 30 * 2 * 3 * 64 * 2 == found.curve(FORMATS["f16"]).bytes(535)
    assert (30, "smollm2.gguf") == found.facts()["llama.block_count"]
    assert (30_081_024, "smollm2.gguf") == found.facts()["token_embd.weight bytes"]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("token_embd.weight", w.EMBEDDING),
        ("output.weight", w.HEAD),
        ("output_norm.weight", w.NORM),
        ("blk.0.attn_q.weight", w.QUERY),
        ("blk.0.attn_q.bias", w.BIAS),
        ("blk.0.attn_q_norm.weight", w.NORM),
        ("blk.1.attn_output.weight", w.OUTPUT),
        ("blk.1.attn_kv_a_mqa.weight", w.LATENT),
        ("blk.1.ffn_down_shexp.weight", w.MLP_OUT),
        ("blk.1.ffn_gate_inp.weight", w.ROUTER),
        ("blk.1.ssm_a", w.STATE),
        ("blk.1.ssm_out.weight", w.STATE_OUT),
        ("blk.1.indexer.k_norm.weight", w.INDEXER),
        ("blk.1.shortconv.conv.weight", w.STATE),
        ("enc.blk.0.attn_q.weight", w.ENCODER),
        ("dec.blk.0.cross_attn_k.weight", w.KEY),
        ("v.blk.0.attn_q.weight", w.TOWER),
        ("mm.0.weight", w.PROJECTOR),
        ("something.new.weight", w.SCALAR),
    ],
)
def test_roles_by_name(name: str, role: str) -> None:
    """What a tensor is for, by its name."""
    assert [role] == [found.role for found in weights_of([(name, (32, 2), 0)]).tensors]


def test_a_token_passes_the_experts_drawn() -> None:
    """Two of eight: of stacked experts, of their biases, and of experts one by one."""
    stacked = weights_of(
        [
            ("blk.0.ffn_up_exps.weight", (64, 32, 8), 0),
            ("blk.0.ffn_down_exps.weight", (32, 64, 8), 0),
            ("blk.0.ffn_up_exps.bias", (32, 8), 0),
        ]
    )
    single = weights_of([(f"blk.0.ffn_up.{n}.weight", (64, 32), 0) for n in range(8)])

    assert (8 * (2 * 64 * 32 + 32), 2 * (2 * 64 * 32 + 32)) == (
        stacked.parameters,
        stacked.active_parameters,
    )
    assert (8 * 64 * 32, 2 * 64 * 32) == (single.parameters, single.active_parameters)
    assert [w.EXPERT_IN] == [found.role for found in single.tensors]


def test_bytes_of_quantised_types_and_tables() -> None:
    """Blocks count whole; tables of rotary angles and scales take bytes and are no parameters."""
    found = weights_of(
        [
            ("blk.0.ffn_up.weight", (256, 2), 12),  # Q4_K
            ("rope_freqs.weight", (32,), 0),
            ("blk.0.attn_q.weight", (64, 2), 40),  # NVFP4
            ("blk.0.attn_q.scale", (1,), 0),
            ("blk.0.attn_q.input_scale", (1,), 0),
        ]
    )

    assert 2 * 144 + 32 * 4 + 2 * 36 + 4 + 4 == found.num_bytes
    assert 512 + 128 == found.parameters
    assert "Q4_K 288" in found.source


def part(number: int, count: int, names: list[str], **keys: int) -> bytes:
    metadata = {**(KEYS if not number else {}), "split.no": number, "split.count": count, **keys}
    rows: list[TensorRow] = [(name, (32,), 0, 128 * place) for place, name in enumerate(names)]
    return header(metadata, rows) + bytes(1024)


def split(folder: Path, parts: list[bytes]) -> list[Path]:
    paths = [folder / f"m-{n + 1:05d}-of-{len(parts):05d}.gguf" for n in range(len(parts))]
    for path, data in zip(paths, parts, strict=True):
        path.write_bytes(data)
    return paths


def test_split_models(tmp_path: Path) -> None:
    """The tensors of all files count, whichever of them is given."""
    total = {"split.tensors.count": 3}
    first, second = split(tmp_path, [part(0, 2, ["a", "b"], **total), part(1, 2, ["c"])])

    for path in (first, second):
        found = read_gguf(path)
        assert found.weights is not None
        assert 3 * 32 * 4 == found.weights.num_bytes
        assert 2 == len(found.blocks)


@pytest.mark.parametrize(
    ("parts", "error", "said"),
    [
        ([part(0, 2, ["a"]), part(0, 2, ["b"])], BadFile, "is not file 2 of 2"),
        (
            [part(0, 2, ["a"], **{"split.tensors.count": 9}), part(1, 2, ["b"])],
            BadFile,
            "hold 2 tensors where the first promises 9",
        ),
        ([part(0, 3, ["a"])], BadFile, "its name would end in -00001-of-00003.gguf"),
        ([part(0, 60_000, ["a"])], BadFile, "its name would end in"),
        ([part(0, -1, ["a"])], BadFile, "split.count of .* is not a number"),
    ],
)
def test_splits_that_do_not_fit(
    tmp_path: Path, parts: list[bytes], error: type[Exception], said: str
) -> None:
    """A file that is not the one its name says, or counts that do not agree."""
    first, *_ = split(tmp_path, parts)
    with pytest.raises(error, match=said):
        read_gguf(first)


def test_a_split_with_a_file_missing(tmp_path: Path) -> None:
    """The absent file is named; a lone reader is told that it is one of several."""
    first, second = split(tmp_path, [part(0, 2, ["a"]), part(1, 2, ["b"])])
    second.unlink()

    with pytest.raises(SourceUnreachable, match=r"m-00002-of-00002\.gguf"):
        read_gguf(first)
    with pytest.raises(BadFile, match="is file 1 of 2 of its model, alone"):
        read_gguf(Memory(first.read_bytes(), first.name))


def test_weights_of_what_is_no_model(tmp_path: Path) -> None:
    """A projector's tensors can be weighed, and are no model."""
    path = tmp_path / "mmproj.gguf"
    keys = {"general.architecture": "clip", "general.type": "mmproj"}
    path.write_bytes(header(keys, [("v.blk.0.attn_q.weight", (32,), 0, 0)]) + bytes(256))

    assert 128 == read_gguf_weights(path).num_bytes
    with pytest.raises(BadFile, match="a vision or audio projector, no language model"):
        read_gguf(path)
