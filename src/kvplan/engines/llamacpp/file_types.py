"""The types of a quantised GGUF file: which tensors of a file type are of which ggml type.

llama-quantize picks a type for each tensor by its role and layer (src/llama-quant.cpp,
llama_tensor_get_type_impl, b11434): values and down projections of some layers have more bits, the
output Q6_K. Vectors, routers and the tensors of a state stay in 32 bits. A row that is no whole
number of blocks falls back to a type of 32.

What a publisher mixed by hand is not known from a name, so an estimate has an error of 3%, one of a
mixture of experts, where recipes differ most, of 6%, and one whose name says so (UD, XL) of 10%.
Of ik_llama.cpp's own types most files are mixed by hand (--custom-q), the experts alone as the name
says and the rest larger: 20%.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from kvplan.core import weights as w
from kvplan.core.errors import BadValue
from kvplan.core.weights import Weight

# Elements and bytes of a block: ggml/src/ggml-common.h (b11434).
GGML: Final[Mapping[str, tuple[int, int]]] = {
    "F32": (1, 4), "F16": (1, 2), "BF16": (1, 2), "Q8_0": (32, 34), "Q5_1": (32, 24),
    "Q5_0": (32, 22), "Q4_1": (32, 20), "Q4_0": (32, 18), "IQ4_NL": (32, 18), "MXFP4": (32, 17),
    "Q6_K": (256, 210), "Q5_K": (256, 176), "Q4_K": (256, 144), "Q3_K": (256, 110),
    "Q2_K": (256, 84), "IQ4_XS": (256, 136), "IQ3_S": (256, 110), "IQ3_XXS": (256, 98),
    "IQ2_S": (256, 82), "IQ2_XS": (256, 74), "IQ2_XXS": (256, 66), "IQ1_M": (256, 56),
    "IQ1_S": (256, 50),
    # ik_llama.cpp 8337e4c, ggml/src/ggml-common.h; what a row has beside its blocks is left out.
    "Q6_0": (32, 26), "IQ6_K": (256, 212), "IQ5_K": (256, 176), "IQ5_KS": (256, 168),
    "IQ4_K": (256, 144), "IQ4_KS": (256, 136), "IQ4_KSS": (256, 128), "IQ4_KT": (256, 128),
    "IQ3_K": (256, 110), "IQ3_KS": (256, 102), "IQ3_KT": (256, 100), "IQ2_KL": (256, 86),
    "IQ2_K": (256, 76), "IQ2_KS": (256, 70), "IQ2_KT": (256, 68), "IQ1_KT": (256, 56),
}  # fmt: skip
FALLBACK: Final = {
    "Q6_K": "Q8_0", "Q5_K": "Q5_1", "Q4_K": "Q5_0", "Q3_K": "IQ4_NL", "Q2_K": "IQ4_NL",
    "IQ4_XS": "IQ4_NL",
}  # fmt: skip
PLAIN: Final = frozenset({"F32", "F16", "BF16", "Q8_0"})

MORE_BITS: Final = 0.5  # of the layers: the first and last eighth, and every third between
EIGHTH: Final = 0.125
SIXTEENTH: Final = 0.0625
ESTIMATE_ERROR: Final = 0.03
MIXTURE_ERROR: Final = 0.06
MIXED_ERROR: Final = 0.1
OWN_ERROR: Final = 0.2

VALUES, DOWN, OUT = (w.VALUE,), (w.MLP_OUT, w.EXPERT_OUT), (w.OUTPUT,)
Rule = tuple[tuple[str, ...], str, float]  # roles, their type, in which share of the layers


class FileType(NamedTuple):
    """The type of most tensors, and of those with a rule."""

    name: str
    most: str
    rules: tuple[Rule, ...] = ()
    output: str = "Q6_K"
    embedding: str = ""


_TYPES: Final = (
    FileType("F32", "F32", output="F32"),
    FileType("F16", "F16", output="F16"),
    FileType("BF16", "BF16", output="BF16"),
    FileType("Q8_0", "Q8_0", output="Q8_0"),
    FileType("Q6_K", "Q6_K"),
    FileType("Q5_K_M", "Q5_K", ((VALUES + DOWN, "Q6_K", MORE_BITS),)),
    FileType("Q5_K_S", "Q5_K"),
    FileType("Q5_1", "Q5_1"),
    FileType("Q5_0", "Q5_0"),
    FileType("Q4_K_M", "Q4_K", ((VALUES + DOWN, "Q6_K", MORE_BITS),)),
    FileType("Q4_K_S", "Q4_K", ((VALUES + DOWN, "Q5_K", EIGHTH),)),
    FileType("Q4_1", "Q4_1"),
    FileType("Q4_0", "Q4_0"),
    FileType("IQ4_NL", "IQ4_NL", ((VALUES, "Q5_K", 1), (DOWN, "Q5_K", EIGHTH))),
    FileType("IQ4_XS", "IQ4_XS", ((VALUES, "Q5_K", 1), (DOWN, "Q5_K", EIGHTH))),
    FileType("Q3_K_L", "Q3_K", ((VALUES + DOWN + OUT, "Q5_K", 1),)),
    FileType("Q3_K_M", "Q3_K", ((VALUES + DOWN + OUT, "Q4_K", 1), (DOWN, "Q5_K", SIXTEENTH))),
    FileType("Q3_K_S", "Q3_K"),
    FileType("IQ3_M", "IQ3_S", ((VALUES + OUT, "Q4_K", 1), (DOWN, "Q4_K", EIGHTH))),
    FileType("IQ3_S", "IQ3_S", ((VALUES, "Q4_K", 1),)),
    FileType("IQ3_XXS", "IQ3_XXS", ((VALUES, "Q4_K", 1), (OUT, "IQ3_S", 1)), "Q5_K", "IQ3_S"),
    FileType("Q2_K", "Q2_K", ((VALUES, "Q4_K", 1), (DOWN + OUT, "Q3_K", 1))),
    FileType("Q2_K_S", "Q2_K", ((VALUES, "Q4_K", 1), (DOWN, "Q4_K", EIGHTH))),
    FileType("IQ2_M", "IQ2_S", ((VALUES, "Q4_K", 1), (OUT, "IQ3_S", 1)), "Q5_K", "IQ3_S"),
    FileType("IQ2_S", "IQ2_XS", ((VALUES, "Q4_K", 1), (OUT, "IQ3_S", 1)), "Q5_K", "IQ3_S"),
    FileType("IQ2_XS", "IQ2_XS", ((VALUES, "Q4_K", 1),), "Q5_K", "Q2_K"),
    FileType("IQ2_XXS", "IQ2_XXS", ((VALUES, "Q4_K", 1),), "Q5_K", "Q2_K"),
    FileType("IQ1_M", "IQ1_M", ((VALUES, "Q4_K", 1), (OUT, "IQ2_XXS", 1)), "Q5_K", "Q2_K"),
    FileType("IQ1_S", "IQ1_S", ((VALUES, "Q4_K", 1), (OUT, "IQ2_XXS", 1)), "Q5_K", "Q2_K"),
    FileType(
        "MXFP4_MOE", "Q8_0", (((w.EXPERT_IN, w.EXPERT_OUT), "MXFP4", 1),), "Q8_0", "Q8_0"
    ),
)  # fmt: skip
# ik_llama.cpp's own: the type of most, of values, of the output (8337e4c, src/llama-quantize.cpp).
_OWN: Final = (
    ("Q6_0", "Q6_0", "Q6_K"), ("IQ6_K", "IQ6_K", "IQ6_K"), ("IQ5_K", "IQ5_K", "Q6_K"),
    ("IQ5_KS", "IQ5_KS", "Q6_K"), ("IQ4_K", "IQ5_K", "Q6_K"), ("IQ4_KS", "IQ5_K", "Q6_K"),
    ("IQ4_KSS", "IQ5_K", "Q6_K"), ("IQ4_KT", "IQ5_K", "Q6_K"), ("IQ3_K", "IQ4_K", "Q5_K"),
    ("IQ3_KS", "IQ4_KS", "Q5_K"), ("IQ3_KT", "IQ4_K", "Q5_K"), ("IQ2_KL", "IQ4_KS", "Q5_K"),
    ("IQ2_K", "IQ4_K", "Q5_K"), ("IQ2_KS", "IQ2_KS", "Q5_K"), ("IQ2_KT", "IQ2_KT", "Q5_K"),
    ("IQ1_KT", "IQ1_KT", "Q5_K"),
)  # fmt: skip
_OWN_TYPES: Final = tuple(
    FileType(most, most, ((VALUES, values, 1),), output) for most, values, output in _OWN
)
OWN: Final = frozenset(kind.name for kind in _OWN_TYPES)
FILE_TYPES: Final = {kind.name: kind for kind in (*_TYPES, *_OWN_TYPES)}
# A checkpoint whose experts are MXFP4 is converted as it is: they stay, the rest is in 16 bits
# (convert_hf_to_gguf.py b6096, GptOssModel). ggml-org's files of gpt-oss have the rest in Q8_0.
AS_MXFP4: Final = FileType(
    "MXFP4 experts", "BF16", (((w.EXPERT_IN, w.EXPERT_OUT), "MXFP4", 1),), "BF16", "BF16"
)
ALIASES: Final = {
    "Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4": "MXFP4_MOE", "FP16": "F16",
    "Q2_K_XL": "Q2_K", "Q3_K_XL": "Q3_K_M", "Q4_K_XL": "Q4_K_M", "Q5_K_XL": "Q5_K_M",
    "Q6_K_XL": "Q6_K", "Q8_K_XL": "Q8_0", "IQ3_XS": "IQ3_S",
}  # fmt: skip
# ik_llama.cpp's rows that lie between each other take what they took before (IQ2_K_R4, Q8_0_R8).
_INTERLEAVED: Final = re.compile(r"_R(?:4|8|16)$")
# Never quantised (tensor_allows_quantization), and stored in 32 bits.
WHOLE_ROLES: Final = frozenset({w.NORM, w.BIAS, w.SCALAR, w.ROUTER, w.STATE})


@lru_cache(maxsize=64)
def file_type(name: str) -> tuple[FileType, float]:
    """A file type by name, and the relative error of what is estimated by it.

    Raises:
        BadValue: no such file type, with those there are.
    """
    key = name.upper().replace("-", "_").removesuffix(".GGUF")
    mixed = key.startswith("UD_") or (key.endswith(("_XL", "_L")) and key != "Q3_K_L")
    key = _INTERLEAVED.sub("", key.removeprefix("UD_"))
    found = FILE_TYPES.get(ALIASES.get(key, key))
    if found is None:
        raise BadValue(
            f"{name[:40]!r} is not a GGUF file type.", f"Known: {', '.join(FILE_TYPES)}."
        )
    if found.most in PLAIN:
        return found, 0.005
    if found.name in OWN:
        return found, OWN_ERROR
    return found, MIXED_ERROR if mixed else ESTIMATE_ERROR


def tensor_bytes(kind: str, weight: Weight) -> int:
    """Bytes of a weight in one type; in its fallback where rows are no whole number of blocks."""
    elements, size = GGML[kind]
    if weight.cols % elements:
        fallback = FALLBACK.get(kind, "F16")
        return tensor_bytes(fallback if weight.cols % GGML[fallback][0] == 0 else "F16", weight)
    return weight.rows * weight.cols // elements * size * weight.copies


def weight_bytes(found: FileType, weight: Weight, *, tied: bool) -> int:
    """Bytes of a weight in a file of some type."""
    if weight.cols == 1 or weight.role in WHOLE_ROLES:
        return weight.parameters * 4
    if weight.role == w.HEAD or (tied and weight.role == w.EMBEDDING):
        return tensor_bytes(found.output, weight)
    if weight.role == w.EMBEDDING and found.embedding:
        return tensor_bytes(found.embedding, weight)
    total = float(tensor_bytes(found.most, weight))
    rest = 1.0
    for roles, kind, share in reversed(found.rules):
        if weight.role in roles and rest > 0:
            took = min(rest, share)
            total += took * (tensor_bytes(kind, weight) - tensor_bytes(found.most, weight))
            rest -= took
    return round(total)
