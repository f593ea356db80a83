"""What a file type weighs: the sizes that loaders printed of files, beside the estimate."""

from __future__ import annotations

from statistics import median

import pytest

from kvplan.core.errors import BadValue
from kvplan.core.units import GIB, MIB
from kvplan.engines.llamacpp.buffers import buffers_of
from kvplan.engines.llamacpp.file_types import FILE_TYPES, file_type
from kvplan.readers.open_model import open_model
from tests.engines.llamacpp.report_rows import Row, rows

SPELLED = {"Medium": "_M", "Small": "_S", "Large": "_L"}


def type_of(row: Row) -> str | None:
    """``Q4_K - Medium`` as a file type; None for a fork's own types."""
    name, _, size = (row.said["quant"] or "").partition(" - ")
    found = name + SPELLED.get(size, "")
    return found if found in FILE_TYPES else None


def sized() -> list[tuple[Row, str, float]]:
    """Reports of a named model that print the file's size in GiB."""
    found = []
    for row in rows("reproduced"):
        kind, size = type_of(row), (row.said["model_size"] or "").split()[:2]
        if (
            kind
            and size[1:] == ["GiB"]
            and row.said["model_name"]
            and not isinstance(row.model, dict)
        ):
            found.append((row, kind, float(size[0].replace(",", "."))))
    return found


# Sizes that no rule of the file type gives.
OTHERWISE = {
    "llamacpp-0074": "a 1-bit recipe whose file says BF16",
    "llamacpp-0088": "a 4-bit recipe whose file says Q8_0",
}


@pytest.mark.parametrize(
    ("row", "kind", "printed"), sized(), ids=lambda found: getattr(found, "id", found)
)
def test_size_is_within_the_stated_error(row: Row, kind: str, printed: float) -> None:
    """Each file's size within the error of its type."""
    buffers = buffers_of(open_model(row.model), kind, None)
    off = abs(buffers.total / GIB - printed) / printed

    assert (row.id in OTHERWISE) == (off > buffers.error + 0.005 / printed), f"{off:.2%}"


def test_half_are_within_a_hundredth() -> None:
    """The median error of all of them."""
    off = [
        abs(buffers_of(open_model(row.model), kind, None).total / GIB - printed) / printed
        for row, kind, printed in sized()
    ]

    assert len(off) >= 30
    assert median(off) < 0.01


def test_buffers_of_a_known_file() -> None:
    """Llama 3 8B in Q4_K_M: 4403.49 MiB on the card and 281.81 MiB of embedding, as printed."""
    buffers = buffers_of(open_model("meta-llama/Meta-Llama-3-8B", offline=True), "Q4_K_M", None)

    assert round((buffers.total - buffers.parts.embedding) / MIB, 2) == 4403.49
    assert round(buffers.parts.embedding / MIB, 2) == 281.81


@pytest.mark.parametrize(
    ("model", "card", "host"), [("openai/gpt-oss-120b", "59.8", "1.1")], ids=["gpt-oss-120b"]
)
def test_experts_of_a_checkpoint_stay_in_mxfp4(model: str, card: str, host: str) -> None:
    """Ollama 0.11's lines of its gpt-oss:120b: 59.8 GiB on the card, 1.1 GiB in host memory."""
    buffers = buffers_of(open_model(model, offline=True), None, None)

    assert (card, host) == tuple(
        f"{size / GIB:.1f}"
        for size in (buffers.total - buffers.parts.embedding, buffers.parts.embedding)
    )


@pytest.mark.parametrize("name", ["IQ2_K", "IQ3_K", "IQ4_KS"])
def test_interleaved_rows_take_no_more(name: str) -> None:
    """ik_llama.cpp's _R4 is the same type with its rows between each other."""
    assert file_type(name) == file_type(f"{name}_R4")


def test_unknown_file_type() -> None:
    """The known ones are listed."""
    with pytest.raises(BadValue, match=r"'Q9_Z' is not a GGUF file type.*Q4_K_M"):
        file_type("Q9_Z")
