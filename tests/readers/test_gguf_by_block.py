"""Where the bytes of a GGUF's tensors belong: input, blocks, their experts, output."""

from __future__ import annotations

from kvplan.core.weights import ByBlock
from kvplan.readers.gguf.header import Tensor
from kvplan.readers.gguf.types import TYPES
from kvplan.readers.gguf.weights import by_block

F32 = TYPES[0]


def tensor(name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, F32, 0)


def test_tensors_by_place() -> None:
    """Experts count among their block; what belongs to no block and no input is the output's."""
    found = by_block(
        [
            tensor("token_embd.weight", 8, 10),
            tensor("blk.0.attn_q.weight", 8, 8),
            tensor("blk.1.ffn_gate_exps.weight", 8, 4, 3),
            tensor("blk.1.ffn_norm.weight", 8),
            tensor("output_norm.weight", 8),
            tensor("output.weight", 8, 10),
        ]
    )

    assert ByBlock(320, (256, 416), (0, 384), 352) == found


def test_a_block_beyond_any_depth_is_no_block() -> None:
    """A hostile name makes no long list."""
    found = by_block([tensor("blk.99999999.attn_q.weight", 2), tensor("blk.x.y", 2)])

    assert () == found.blocks
