"""What a config's tensors weigh: their number, and the type or the scheme they are stored in."""

from __future__ import annotations

from kvplan.core.weights import Storage, Unquantised, Weights, count_parameters
from kvplan.readers.config import Config
from kvplan.readers.families.base import Description
from kvplan.readers.quantisation import quantised

BYTES_PER_PARAMETER = {
    "float32": 4, "float": 4, "bfloat16": 2, "float16": 2, "half": 2, "float64": 8,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int8": 1,
}  # fmt: skip


def weigh(c: Config, found: Description) -> tuple[Weights | None, tuple[str, ...]]:
    """Parameters and how they are stored, and what could not be said of them."""
    if found.uncounted:
        return None, (f"Parameters are not counted: {found.uncounted}.",)
    if not found.tensors:
        return None, ()
    parameters, active = count_parameters(found.tensors)
    storage, said = _storage(c, len(found.blocks))
    if found.left_out:
        alone = "Parameters are those of the language model alone"
        said = (*said, f"{alone}: the config has no {found.left_out}.")
    weights = Weights(
        tensors=found.tensors,
        parameters=parameters,
        active_parameters=active,
        storage=storage,
    )
    return weights, said


def _storage(c: Config, depth: int) -> tuple[Storage, tuple[str, ...]]:
    """The quantisation that the config names, else its type, else 16 bits."""
    dtype = str(c.raw.get("dtype") or c.raw.get("torch_dtype") or "bfloat16")
    size = BYTES_PER_PARAMETER.get(dtype.removeprefix("torch."), 2)
    scheme, said = quantised(c, depth)
    if scheme is not None:
        return scheme, said
    return Unquantised(size, dtype.removeprefix("torch.")[:20]), said
