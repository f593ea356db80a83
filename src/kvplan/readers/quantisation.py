"""A config's quantization_config: which matrices are stored in which scheme.

One reader a method; each says of every role which share of its layers is stored in which scheme.
Shares are worked out when the bytes are asked: a recipe can name 50,000 modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from kvplan.core import weights as w
from kvplan.core.quantisation import LINEAR_ROLES, WHOLE, Quantised, Scheme
from kvplan.readers.config import Config
from kvplan.readers.module_patterns import counted, is_all, share, strings

# Never quantised: the router decides by small differences, towers and heads are kept by every
# published recipe unless it says otherwise.
ALWAYS_PLAIN = frozenset({w.ROUTER, w.TOWER, w.PROJECTOR, w.ENCODER, w.HEAD})
EXPERTS = frozenset({w.EXPERT_IN, w.EXPERT_OUT})
MLX_OUTSIDE = {w.EMBEDDING: "embed_tokens", w.HEAD: "lm_head"}
MAX_GROUPS = 16  # a published recipe has up to four

FP8_BLOCK = Scheme(name="fp8 blocks", bits=8, block_rows=128, block_cols=128, scale_bytes=4)
FP8_TENSOR = Scheme(name="fp8 per tensor", bits=8, block_rows=WHOLE, per_tensor_bytes=8)
FP8_CHANNEL = Scheme(name="fp8 per channel", bits=8, scale_bytes=4)
NVFP4 = Scheme(name="nvfp4", bits=4, block_cols=16, scale_bytes=1, per_tensor_bytes=8)
MXFP4 = Scheme(name="mxfp4", bits=4, block_cols=32, scale_bytes=1)
MXFP8 = Scheme(name="mxfp8", bits=8, block_cols=32, scale_bytes=1)
# bitsandbytes 0.48, functional.py, quantize_4bit: a float32 absmax each 64 elements; with double
# quantisation these are bytes, with a float32 each 256 of them.
NF4 = Scheme(name="nf4", bits=4, block_cols=64, scale_bytes=4)
NF4_DOUBLE = Scheme(name="nf4 double", bits=4, block_cols=64, scale_bytes=1)
INT8_ROW = Scheme(name="int8", bits=8, scale_bytes=4)
TERNARY = Scheme(name="packed ternary", bits=2, block_rows=WHOLE, per_tensor_bytes=2)

# Keys of a recipe; mlx-lm 0.32.0, utils.py, quantize_model, writes the last, and it twice.
SECTIONS = ("quantization_config", "compression_config", "quantization")
MODELOPT = {
    "FP8": FP8_TENSOR, "NVFP4": NVFP4, "W4A16_NVFP4": NVFP4, "MXFP8": MXFP8, "MXFP4": MXFP4,
    "FP8_PB_WO": FP8_BLOCK, "FP8_PER_CHANNEL_PER_TOKEN": FP8_CHANNEL,
}  # fmt: skip


def quantised(c: Config, depth: int) -> tuple[Quantised | None, tuple[str, ...]]:
    """The storage that a config's quantisation gives, None without one; and what was not known.

    Args:
        c: the whole config.
        depth: blocks of the model.
    """
    key, found = _section(c)
    if found is None:
        return None, ()
    method = _method(found)
    reader = METHODS.get(method)
    if reader is None:
        return None, (
            f"The quantisation {method[:40]!r} is not known: weights are counted in 16 bits.",
        )
    return Quantised(method=method, shares=_Lazy(reader, found, c, depth), told_by=key), ()


def _section(c: Config) -> tuple[str, Mapping[str, Any] | None]:
    """The quantisation of the file, or of its language model, and the key it stands under."""
    for raw in (c.raw, c.raw.get("text_config")):
        if isinstance(raw, Mapping):
            for key in SECTIONS:
                found = raw.get(key)
                if isinstance(found, Mapping) and found:
                    return key, found
    return "", None


def _method(q: Mapping[str, Any]) -> str:
    """``quant_method``, or that of the producer where there is none."""
    method = q.get("quant_method")
    if isinstance(method, str) and method:
        return method.lower().replace("_", "-")
    if "group_size" in q and "bits" in q:
        return "mlx"
    return "modelopt" if "quant_algo" in q or "config_groups" in q else "unnamed"


Shares = dict[str, tuple[tuple[Scheme, float], ...]]
Reader = Callable[[Mapping[str, Any], Config, int], Shares]


class _Lazy(Mapping[str, tuple[tuple[Scheme, float], ...]]):
    """Shares that are worked out when a weight is first asked of them."""

    def __init__(self, reader: Reader, q: Mapping[str, Any], c: Config, depth: int) -> None:
        self._read = lru_cache(maxsize=1)(lambda: reader(q, c, depth))

    def __getitem__(self, role: str) -> tuple[tuple[Scheme, float], ...]:
        return self._read()[role]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def _fp8(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """DeepSeek's blocks where a block size is given, else a scale a tensor."""
    blocks = q.get("weight_block_size")
    scheme = _blocks(blocks) if isinstance(blocks, list) and len(blocks) == 2 else FP8_TENSOR
    shares = _everywhere(scheme, _kept(q, depth))
    if (
        "fp4" in (c.raw.get("expert_dtype"), q.get("expert_dtype"))
        or q.get("moe_quant_algo") == "NVFP4"
    ):
        experts = NVFP4 if q.get("moe_quant_algo") == "NVFP4" else MXFP4
        shares |= dict.fromkeys(EXPERTS, ((experts, 1.0),))
    return shares


def _blocks(size: list[Any]) -> Scheme:
    rows, cols = size
    if not all(isinstance(side, int) and 0 < side < 1 << 20 for side in (rows, cols)):
        return FP8_BLOCK
    name = f"fp8 blocks of {rows} × {cols}"
    return Scheme(name=name, bits=8, block_rows=rows, block_cols=cols, scale_bytes=4)


def _fbgemm(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    return _everywhere(FP8_CHANNEL, _kept(q, depth))


def _gptq(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """Packed integers, 16-bit scales, packed zero points, and an index of each input."""
    return _everywhere(_grouped(q, index=4), _kept(q, depth))


def _awq(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """As GPTQ without the index."""
    return _everywhere(_grouped(q, index=0), _kept(q, depth))


def _grouped(q: Mapping[str, Any], index: int) -> Scheme:
    bits = _whole(q.get("bits") or q.get("w_bit"), 4, 16)
    group = q.get("group_size") or q.get("q_group_size")
    cols = group if isinstance(group, int) and 0 < group < 1 << 20 else WHOLE
    zero = 0 if q.get("zero_point") is False and not index else bits
    return Scheme(
        name=f"int{bits} in groups of {cols or 'a row'}",
        bits=bits,
        block_cols=cols,
        scale_bytes=2,
        zero_bits=zero,
        per_col_bytes=index,
    )


def _bitsandbytes(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    if q.get("load_in_8bit") or q.get("_load_in_8bit"):
        return _everywhere(INT8_ROW, _kept(q, depth))
    double = q.get("bnb_4bit_use_double_quant")
    return _everywhere(NF4_DOUBLE if double else NF4, _kept(q, depth))


def _mxfp4(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """gpt-oss: the experts alone."""
    return dict.fromkeys(EXPERTS, ((MXFP4, 1.0),))


def _bitnet(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    return _everywhere(TERNARY, _kept(q, depth))


def _mlx(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """Every linear layer and table, but for the modules that have an entry of their own.

    mlx-lm 0.32.0, utils.py, quantize_model: an entry is other parameters, or false.
    """
    entries = [(name, found) for name, found in counted(q) if "." in name or name == "lm_head"]
    names = [name for name, _ in entries]
    roles = LINEAR_ROLES - ALWAYS_PLAIN | MLX_OUTSIDE.keys()
    shares: Shares = {role: ((_mlx_scheme(q), 1.0 - _named(role, names, depth)),) for role in roles}
    for scheme, own in list(_mlx_groups(entries).items())[:MAX_GROUPS]:
        for role in roles:
            part = _named(role, own, depth)
            if part > 0:
                shares[role] = (*shares[role], (scheme, part))
    return shares


def _mlx_groups(entries: list[tuple[str, Any]]) -> dict[Scheme, list[str]]:
    """The modules with parameters of their own, by their scheme."""
    groups: dict[Scheme, list[str]] = {}
    for name, found in entries:
        if isinstance(found, Mapping):
            groups.setdefault(_mlx_scheme(found), []).append(name)
    return groups


def _mlx_scheme(q: Mapping[str, Any]) -> Scheme:
    """A 16-bit scale and a 16-bit bias a group, unless the mode is a format's name."""
    named = MODELOPT.get(str(q.get("mode", "")).upper())
    if named is not None:
        return named
    bits, cols = _whole(q.get("bits"), 4, 16), _whole(q.get("group_size"), 64, 1 << 20)
    name = f"int{bits} in groups of {cols}"
    return Scheme(name=name, bits=bits, block_cols=cols, scale_bytes=2, zero_bits=16)


def _named(role: str, names: list[str], depth: int) -> float:
    """The part of a role that names speak of; a table or the head is one module."""
    outside = MLX_OUTSIDE.get(role)
    if outside is None:
        return share(role, names, depth)
    return float(any(name.endswith(outside) for name in names))


def _compressed_tensors(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """Groups of modules, each with its bits and its blocks; what ``ignore`` names is left alone."""
    groups = q.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        return _modelopt_algorithms(q, depth)
    kept = _kept(q, depth)
    shares: dict[str, tuple[tuple[Scheme, float], ...]] = {}
    for group in list(groups.values())[:MAX_GROUPS]:
        scheme = _group_scheme(group)
        targets = strings(group.get("targets")) if isinstance(group, Mapping) else []
        if scheme is None:
            continue
        for role in LINEAR_ROLES - ALWAYS_PLAIN:
            named = not targets or is_all(targets)
            part = 1.0 - kept(role) if named else share(role, targets, depth)
            if part > 0:
                shares[role] = (*shares.get(role, ()), (scheme, part))
    return shares


def _modelopt(q: Mapping[str, Any], c: Config, depth: int) -> Shares:
    """One algorithm, or one a module (``quantized_layers``), or groups."""
    if isinstance(q.get("config_groups"), Mapping):
        return _compressed_tensors(q, c, depth)
    return _modelopt_algorithms(q, depth)


def _modelopt_algorithms(q: Mapping[str, Any], depth: int) -> Shares:
    layers = q.get("quantized_layers")
    if isinstance(layers, Mapping):
        return _by_module(layers, depth)
    scheme = MODELOPT.get(str(q.get("quant_algo")))
    return _everywhere(scheme, _kept(q, depth)) if scheme else {}


def _by_module(layers: Mapping[str, Any], depth: int) -> Shares:
    """Modules with an algorithm each."""
    names: dict[str, list[str]] = {}
    for module, value in counted(layers):
        algorithm = value.get("quant_algo") if isinstance(value, Mapping) else None
        names.setdefault(str(algorithm), []).append(module)
    shares: dict[str, tuple[tuple[Scheme, float], ...]] = {}
    for algorithm, modules in names.items():
        scheme = MODELOPT.get(algorithm)
        for role in LINEAR_ROLES - ALWAYS_PLAIN if scheme else ():
            part = share(role, modules, depth)
            if scheme and part > 0:
                shares[role] = (*shares.get(role, ()), (scheme, part))
    return shares


def _group_scheme(group: Any) -> Scheme | None:
    """The scheme of one group's ``weights``."""
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        return None
    bits = _whole(weights.get("num_bits"), 8, 16)
    group_size = weights.get("group_size")
    strategy = weights.get("strategy") or ("group" if group_size else "tensor")
    is_float = weights.get("type") == "float"
    if strategy in ("group", "tensor_group"):
        cols = _whole(group_size, 128, 1 << 20)
        if is_float and bits == 4 and cols == 16:
            return NVFP4
        if is_float and bits == 4 and cols == 32:
            return MXFP4
        zero = 0 if weights.get("symmetric", True) or is_float else bits
        name = f"{'fp' if is_float else 'int'}{bits} in groups of {cols}"
        return Scheme(name=name, bits=bits, block_cols=cols, scale_bytes=2, zero_bits=zero)
    if strategy == "block" and isinstance(weights.get("block_structure"), list):
        return _blocks(weights["block_structure"])
    if strategy == "channel":
        return Scheme(name=f"{bits} bits per channel", bits=bits, scale_bytes=2)
    return Scheme(name=f"{bits} bits per tensor", bits=bits, block_rows=WHOLE, per_tensor_bytes=8)


METHODS: dict[str, Reader] = {
    "fp8": _fp8,
    "fbgemm-fp8": _fbgemm,
    "gptq": _gptq,
    "gptq-marlin": _gptq,
    "awq": _awq,
    "awq-marlin": _awq,
    "auto-round": _awq,
    "intel/auto-round": _awq,
    "bitsandbytes": _bitsandbytes,
    "mxfp4": _mxfp4,
    "bitnet": _bitnet,
    "compressed-tensors": _compressed_tensors,
    "modelopt": _modelopt,
    "modelopt-fp4": _modelopt,
    "modelopt-mixed": _modelopt,
    "mlx": _mlx,
}


def _everywhere(scheme: Scheme, kept: Callable[[str], float]) -> Shares:
    """Every linear role in one scheme, but for the part that is kept."""
    return {role: ((scheme, 1.0 - kept(role)),) for role in LINEAR_ROLES - ALWAYS_PLAIN}


def _kept(q: Mapping[str, Any], depth: int) -> Callable[[str], float]:
    """The part of a role that the file leaves alone."""
    names: list[str] = []
    for key in ("modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers"):
        names += strings(q.get(key))
    return lambda role: share(role, names, depth)


def _whole(found: Any, default: int, most: int) -> int:
    """A whole number of a recipe, the default where it is none."""
    return found if isinstance(found, int) and 0 < found <= most else default
