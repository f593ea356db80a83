"""The parts that models are built of, as the tensors they hold.

Each function returns the weights of one instance in one layer; families count the layers. Names
follow transformers' modules, so that a part can be held against the code it describes.
"""

from __future__ import annotations

from kvplan.core import weights as w
from kvplan.core.weights import Weight

Weights = tuple[Weight, ...]


def linear(role: str, cols: int, rows: int, bias: bool = False, count: int = 1) -> Weights:
    """``nn.Linear(cols, rows)``: a matrix of rows × cols and, with ``bias``, a vector of rows."""
    if bias:
        return (Weight(role, rows, cols, count), Weight(w.BIAS, rows, 1, count))
    return (Weight(role, rows, cols, count),)


def norm(size: int, kind: str = "rms", count: int = 1) -> Weights:
    """A normalisation over ``size`` features.

    ``rms`` has a scale, ``layer`` a scale and a shift, ``none`` no parameters.
    """
    if kind == "rms":
        return (Weight(w.NORM, size, 1, count),)
    if kind == "layer":
        return (Weight(w.NORM, size, 1, 2 * count),)
    return ()


def attention(
    hidden: int,
    query_heads: int,
    kv_heads: int,
    key_dim: int,
    *,
    value_dim: int | None = None,
    bias: bool = False,
    out_bias: bool | None = None,
    qk_norm: str = "",
    out: int | None = None,
) -> Weights:
    """Query, key, value and output projections of grouped-query attention.

    ``bias`` is on query, key and value; ``out_bias`` on the output (default: the same).
    ``qk_norm`` is ``head`` (a scale of one head's width for queries and one for keys, shared by
    heads), ``head_layer`` (the same with shifts) or ``all`` (scales as wide as all heads together).
    """
    value_dim = key_dim if value_dim is None else value_dim
    out_bias = bias if out_bias is None else out_bias
    parts: Weights = (
        Weight(w.QUERY, query_heads * key_dim, hidden),
        Weight(w.KEY, kv_heads * key_dim, hidden),
        Weight(w.VALUE, kv_heads * value_dim, hidden),
        Weight(w.OUTPUT, out or hidden, query_heads * value_dim),
    )
    if bias:
        parts += (Weight(w.BIAS, (query_heads + kv_heads) * key_dim + kv_heads * value_dim),)
    if out_bias:
        parts += (Weight(w.BIAS, out or hidden),)
    if qk_norm == "head":
        parts += (Weight(w.NORM, key_dim, 1, 2),)
    elif qk_norm == "head_layer":
        parts += (Weight(w.NORM, key_dim, 1, 4),)
    elif qk_norm == "all":
        parts += (Weight(w.NORM, (query_heads + kv_heads) * key_dim),)
    return parts


def mlp(hidden: int, inner: int, *, gated: bool = True, bias: bool = False) -> Weights:
    """A feed-forward network: gate and up (or up alone), then down."""
    wide = 2 if gated else 1
    if bias:
        return (
            Weight(w.MLP_IN, inner, hidden, wide),
            Weight(w.MLP_OUT, hidden, inner),
            Weight(w.BIAS, wide * inner + hidden),
        )
    return (Weight(w.MLP_IN, inner, hidden, wide), Weight(w.MLP_OUT, hidden, inner))


def experts(
    hidden: int,
    inner: int,
    count: int,
    drawn: int,
    *,
    gated: bool = True,
    bias: bool = False,
    router_bias: bool = False,
    routed_from: int = 0,
) -> Weights:
    """``count`` experts of which a token passes ``drawn``, and the router over them.

    ``routed_from`` is the width that the router reads, 0 for that of the experts.
    """
    wide = 2 if gated else 1
    drawn = min(drawn, count)
    parts: Weights = (
        Weight(w.EXPERT_IN, inner, hidden, wide * count, wide * drawn),
        Weight(w.EXPERT_OUT, hidden, inner, count, drawn),
        Weight(w.ROUTER, count, routed_from or hidden),
    )
    if bias:
        parts += (Weight(w.BIAS, wide * inner + hidden, 1, count, drawn),)
    if router_bias:
        parts += (Weight(w.BIAS, count),)
    return parts


def latent_attention(
    hidden: int,
    heads: int,
    *,
    query_rank: int | None,
    kv_rank: int,
    nope_dim: int,
    rope_dim: int,
    value_dim: int,
    bias: bool = False,
) -> Weights:
    """Latent attention: keys and values through a rank, queries through one or direct."""
    key_dim = nope_dim + rope_dim
    if query_rank:
        query = latent_query(hidden, query_rank, heads * key_dim, bias=bias)
    else:
        query = linear(w.QUERY, hidden, heads * key_dim)
    return (
        *query,
        *latent_down(hidden, kv_rank, rope_dim, bias=bias),
        *latent_up(heads, kv_rank, nope_dim, value_dim),
        *linear(w.OUTPUT, heads * value_dim, hidden, bias),
    )


def latent_query(
    hidden: int, rank: int, rows: int, *, bias: bool = False, reads: int | None = None
) -> Weights:
    """Queries through a rank: down, a norm, up; ``reads`` is the width the last one reads."""
    return (
        *linear(w.LATENT, hidden, rank, bias),
        Weight(w.NORM, rank),
        Weight(w.QUERY, rows, reads or rank),
    )


def latent_down(hidden: int, rank: int, rope_dim: int, *, bias: bool = False) -> Weights:
    """What a latent attention caches is the output of this: down to the rank, and its norm."""
    return (*linear(w.LATENT, hidden, rank + rope_dim, bias), Weight(w.NORM, rank))


def latent_up(heads: int, rank: int, nope_dim: int, value_dim: int) -> Weights:
    """Keys and values of every head out of the rank."""
    return (Weight(w.KEY, heads * nope_dim, rank), Weight(w.VALUE, heads * value_dim, rank))


def hyper_connection(hidden: int, streams: int, mixes: int, scales: int) -> Weights:
    """The mixing of ``streams`` residual streams: a projection to ``mixes``, a base, scales.

    transformers 5.24.0, models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4HyperConnection.
    """
    return (
        Weight(w.SCALAR, mixes, streams * hidden),
        Weight(w.SCALAR, mixes),
        Weight(w.SCALAR, scales),
    )


def convolution(
    role: str, cols: int, rows: int, *kernel: int, bias: bool = True, groups: int = 1
) -> Weights:
    """``nn.ConvNd(cols, rows, kernel)``: rows × (cols / groups × kernel), and a bias of rows."""
    area = 1
    for side in kernel:
        area *= side
    return linear(role, cols // groups * area, rows, bias)


def embedding(rows: int, cols: int, role: str = w.EMBEDDING) -> Weights:
    """``nn.Embedding(rows, cols)``."""
    return (Weight(role, rows, cols),)


def scalar(size: int, count: int = 1) -> Weights:
    """A bare parameter of ``size`` elements."""
    return (Weight(w.SCALAR, size, 1, count),)


def repeat(parts: Weights, count: int) -> Weights:
    """The same parts in ``count`` layers."""
    return tuple([part.times(count) for part in parts]) if count else ()


def as_role(parts: Weights, role: str) -> Weights:
    """The same tensors under one role: what belongs to a tower or an encoder."""
    return tuple([Weight(role, p.rows, p.cols, p.copies, p.active) for p in parts])
