"""What a config's tensors weigh: parameters times the bytes of the type they are stored in."""

from __future__ import annotations

from kvplan.core.weights import Weights, count_parameters
from kvplan.readers.config import Config
from kvplan.readers.families.base import Description

BYTES_PER_PARAMETER = {
    "float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "float64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
}  # fmt: skip


def weigh(c: Config, found: Description) -> tuple[Weights | None, tuple[str, ...]]:
    """Parameters and their bytes, and what could not be said of them."""
    if found.uncounted:
        return None, (f"Parameters are not counted: {found.uncounted}.",)
    if not found.tensors:
        return None, ()
    parameters, active = count_parameters(found.tensors)
    dtype = str(c.raw.get("dtype") or c.raw.get("torch_dtype") or "bfloat16")
    size = BYTES_PER_PARAMETER.get(dtype.removeprefix("torch."), 2)
    weights = Weights(
        tensors=found.tensors,
        parameters=parameters,
        active_parameters=active,
        num_bytes=parameters * size,
        source=f"{parameters:,} parameters × {size} bytes ({dtype[:20]})",
    )
    return weights, ()
