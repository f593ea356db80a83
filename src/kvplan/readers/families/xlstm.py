"""xLSTM: a matrix memory a head, with its normaliser and its maximum.

models/xlstm/configuration_xlstm.py and modeling_xlstm.py (transformers 5.24.0).
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.errors import BadFile
from kvplan.core.layers import INT64_BYTES
from kvplan.core.stack import Stack
from kvplan.core.states import RecurrentState, StateTensor
from kvplan.core.units import MAX_TOKENS
from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Decoder, Mixer, Weights
from kvplan.readers.families.mamba import MODEL_BYTES

ROUNDING = 64  # of the widths of keys and values in the cache


class XLstm(Decoder):
    """A memory and a gated network a block; a weight and with ``use_bias`` a shift in each norm."""

    mlp_bias = "use_bias"

    def mixers(self, c: Config) -> Stack[Mixer]:
        """The same memory in every block; the first also holds the cache's one counter."""
        count, weights = self.depth(c), self.memory_weights(c)
        tensors = self.memory(c)
        counter = StateTensor(name="length", shape=(1,), element_bytes=INT64_BYTES, split=None)
        first = Mixer((RecurrentState(tensors=(counter, *tensors)),), weights)
        later = Mixer((RecurrentState(tensors=tensors),), weights)
        return Stack((first, later), (0, *[1] * (count - 1))[:count])

    def memory(self, c: Config) -> tuple[StateTensor, ...]:
        """Keys by values, keys, and one number a head, all in the model's type."""
        heads = c.whole("num_heads")
        key = rounded(self.scaled(c, "qk_dim_factor"), ROUNDING) // heads
        value = rounded(self.scaled(c, "v_dim_factor"), ROUNDING) // heads
        shapes = {"memory": (heads, key, value), "normaliser": (heads, key), "maximum": (heads, 1)}
        return tuple(
            StateTensor(name=name, shape=shape, element_bytes=MODEL_BYTES)
            for name, shape in shapes.items()
        )

    def memory_weights(self, c: Config) -> Weights:
        """Queries, keys, values and three gates, of which two are one number a head."""
        hidden, heads, bias = self.hidden(c), c.whole("num_heads"), c.flag("use_bias")
        key, value = int(self.scaled(c, "qk_dim_factor")), int(self.scaled(c, "v_dim_factor"))
        return (
            *parts.linear(w.STATE_IN, hidden, 2 * key + 2 * value, bias),
            *parts.linear(w.STATE_IN, hidden, 2 * heads, bias=True),
            *parts.norm(value // heads * heads, "layer" if bias else "rms"),
            *parts.linear(w.STATE_OUT, value, hidden, bias),
        )

    def block_norms(self, c: Config) -> Weights:
        """Two, shifted with ``use_bias``."""
        return parts.norm(self.hidden(c), "layer" if c.flag("use_bias") else "rms", 2)

    def inner(self, c: Config) -> int:
        """The width times a factor, rounded up."""
        return rounded(self.scaled(c, "ffn_proj_factor"), c.whole("ffn_round_up_to_multiple_of"))

    def hidden(self, c: Config) -> int:
        """Also called ``embedding_dim``."""
        return c.first_whole("hidden_size", "embedding_dim")

    def depth(self, c: Config) -> int:
        """Also called ``num_blocks``."""
        return c.layers() if c.has("num_hidden_layers") else c.layers("num_blocks")

    def tied(self, c: Config) -> bool:
        """Never: the class ties nothing."""
        return False

    def scaled(self, c: Config, key: str) -> float:
        """The width times one of the factors."""
        scaled = self.hidden(c) * c.number(key)
        if not 1 <= scaled <= MAX_TOKENS:
            raise BadFile(f"The config's {key} is {c.number(key)}, which makes no width.")
        return scaled


def rounded(width: float, multiple: int) -> int:
    """The next multiple of a width that may not be whole (``round_up_to_next_multiple_of``)."""
    return int((width + multiple - 1) // multiple) * multiple
