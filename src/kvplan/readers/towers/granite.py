"""Granite Docling's vision encoder: SigLIP, and a connector of one or two routes.

The rules are those of transformers 5.24.0, models/granite_docling/modeling_granite_docling.py.
"""

from __future__ import annotations

from kvplan.readers.config import Config
from kvplan.readers.families import parts
from kvplan.readers.families.base import Weights
from kvplan.readers.towers import vit


def granite_docling(c: Config) -> Weights:
    """The patches' encoder; the fine route joins squares of half the side."""
    width, out, side = c.whole("hidden_size"), c.whole("out_hidden_size"), c.whole("scale_factor")
    fine = route(c, side // 2) if c.flag("use_fine_route") else ()
    return (
        *vit.plain(c),
        *parts.norm(width, "layer"),
        *route(c, side),
        *fine,
        *parts.norm(out, "layer", 2),
        *parts.linear("", out, out),
    )


def route(c: Config, side: int) -> Weights:
    """GraniteDoclingConnectorPath: a projection, and a merger for each layer that is read."""
    joined, out = c.whole("hidden_size") * side**2, c.whole("out_hidden_size")
    merger = (
        *parts.norm(joined, "layer"),
        *parts.linear("", joined, out, bias=True),
        *parts.linear("", out, out, bias=True),
    )
    read = c.wholes("deepstack_visual_indexes", (3, 7, 10))
    return (*parts.linear("", joined, out), *parts.repeat(merger, len(read)))
