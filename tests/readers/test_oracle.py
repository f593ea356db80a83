"""What kvplan says of a config equals what transformers itself keeps and counts.

The cases were measured with transformers 5.24.0 (``tests/reference/kv_oracle``): every tensor that
the returned cache holds, after a prefill and, where recorded, after three more steps.
"""

from __future__ import annotations

import pytest

from kvplan.core.errors import KvplanError
from kvplan.core.formats import FORMATS
from tests.oracle_cases import Case, default_cases, model_of, real_cases

# Answered records that kvplan refuses by name or counts otherwise, with the reason.
REFUSED: dict[str, str] = {}
OTHER_PARAMETERS: dict[str, str] = {}

CASES = [case for case in (*default_cases(), *real_cases()) if case.answered]
COUNTED = [case for case in (*default_cases(), *real_cases()) if case.parameters is not None]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_bytes_equal_the_oracle(case: Case) -> None:
    """Every batch and length, prefill and later steps, to the byte."""
    if case.name in REFUSED:
        with pytest.raises(KvplanError):
            model_of(case)
        return
    measured = list(case.sizes())
    curves = {length: model_of(case, length).curve(FORMATS["bf16"]) for _, _, length, _ in measured}

    assert [row[3] for row in measured] == [
        curves[length].bytes(tokens) * sequences for sequences, tokens, length, _ in measured
    ]


@pytest.mark.parametrize("case", COUNTED, ids=[case.name for case in COUNTED])
def test_parameters_equal_the_oracle(case: Case) -> None:
    """Every parameter of the class that the config names, tied ones once."""
    if case.name in REFUSED or case.name in OTHER_PARAMETERS:
        return
    weights = model_of(case).weights

    assert weights is not None
    assert case.parameters == weights.parameters


def test_enough_is_answered() -> None:
    """At least 300 of the answered default records, and all answered real models."""
    defaults = [case for case in default_cases() if case.answered]
    reals = [case for case in real_cases() if case.answered]

    assert 300 <= sum(case.name not in REFUSED for case in defaults)
    assert not [case.name for case in reals if case.name in REFUSED]
