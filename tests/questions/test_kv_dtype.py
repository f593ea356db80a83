"""Formats of the cache, scales and all."""

from __future__ import annotations

import pytest

from tests.questions.ask import fit
from tests.questions.rows import printed, settled


def _record(kv_dtype: str) -> float:
    """Bytes of a token in one layer of GLM-5.2's latent attention."""
    plan = fit("zai-org/GLM-5.2", kv_cache_dtype=kv_dtype, kv_pool="100GiB").plan
    pages = plan.groups[0].members  # type: ignore[attr-defined]
    return float(max(spec.page_bytes / spec.block_size for spec, _ in pages))


ANSWERS = {"p062.fp8": lambda: _record("fp8_ds_mla")}
EXCEPTIONS = {
    "p062.nvfp4": "a fork's record of 432 B; vLLM 0.32.0's nvfp4_ds_mla has 352",
    "p062.total_saving_pct": "follows from that record, and from the fork's indexer",
}


@pytest.mark.parametrize("figure", ANSWERS)
def test_settled_figure(figure: str) -> None:
    """The answer has the settled digits."""
    expected = settled()[figure]

    assert expected == printed(ANSWERS[figure](), expected)
