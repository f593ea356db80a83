"""A measurement becomes an estimate: exact where it was measured, by bytes for another model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kvplan
from kvplan.core.errors import BadFile, BadQuestion, BadValue, SourceUnreachable
from kvplan.core.measured import Calibration, Decode, Prefill, Reads
from kvplan.measuring.calibration import Point, Prompted, calibrate, calibrate_prefill
from kvplan.planning.speed.measured import read_calibration
from kvplan.readers import reach
from tests.measuring.caching_server import Caching, caching

MODEL = "llama-3.1-8b"
READS = Reads(15009849344, 131072)
MEASURED = Calibration(
    engine="vllm",
    version="0.19.0",
    model=MODEL,
    card="h100-sxm-80gb",
    decode=Decode(fixed_s=0.006, sequence_s=1e-5, read_s=4e-8, error=0.03),
    prefill=Prefill(token_s=4e-5, pair_s=1e-10, error=0.04),
    reads=READS,
    most_batch=8,
)


def folder(path: Path, found: Calibration = MEASURED, **changed: Any) -> Path:
    (path / "calibration.json").write_text(json.dumps({**found.to_dict(), **changed}))
    return path


@given(
    fixed=st.floats(1e-3, 1e-1),
    read=st.floats(1e-9, 1e-5),
    sequence=st.floats(0, 1e-3),
    batches=st.lists(st.integers(1, 64), min_size=2, max_size=4, unique=True),
)
def test_coefficients_are_found_again(
    fixed: float, read: float, sequence: float, batches: list[int]
) -> None:
    """Points of the formula itself give its coefficients."""
    points = [
        Point(batch, context, fixed + batch * (sequence + read * context))
        for batch in batches
        for context in (128, 2048, 8192)
    ]
    found = calibrate(points)

    assert found.error < 1e-6
    assert found.seconds(7, 1000) == pytest.approx(fixed + 7 * (sequence + read * 1000), rel=1e-4)


def test_two_lengths_are_enough() -> None:
    """Weights by the one, cache by the other."""
    found = calibrate([Point(1, 100, 0.011), Point(1, 1100, 0.021)])

    assert (0.01, 1e-5, 0.0) == pytest.approx((found.fixed_s, found.read_s, found.sequence_s))


def test_no_coefficient_is_below_nothing() -> None:
    """Noise that falls with the length is no cache that is read in less than no time."""
    found = calibrate([Point(1, 100, 0.012), Point(1, 1000, 0.011)])

    assert found.read_s == 0 <= found.fixed_s


def test_one_length_calibrates_nothing() -> None:
    """A sentence says what to measure."""
    with pytest.raises(BadQuestion, match="two lengths or batches at least"):
        calibrate([Point(1, 100, 0.01), Point(1, 100, 0.011)])


def test_prefills_grow_with_pairs() -> None:
    """First tokens of three lengths give a token's and a pair's time."""
    truth = Prefill(token_s=2e-4, pair_s=5e-9, error=0.0)
    prompted = [Prompted(n, 0.01 + truth.seconds(n)) for n in (100, 1000, 8000)]
    found = calibrate_prefill(prompted, 0.01)

    assert found is not None
    assert (2e-4, 5e-9) == pytest.approx((found.token_s, found.pair_s), rel=1e-6)


def estimate(path: Path, **asked: Any) -> dict[str, Any]:
    question = {"gpu": "h100", "context": 4096, "concurrency": 8, "calibration": path, **asked}
    answer = kvplan.fit(question.pop("model", MODEL), **question).to_dict()
    found: dict[str, Any] = answer["speed"]["estimate"]
    return found


def test_fit_is_by_the_measurement(tmp_path: Path) -> None:
    """The measured formula at the asked batch and length, with the measurement's error."""
    found = estimate(folder(tmp_path))

    assert found["decode_step_s"] == pytest.approx(0.006 + 8 * (1e-5 + 4e-8 * 4096))
    assert (0.05, True) == (found["error"], found["calibrated"])
    assert found["error"] < kvplan.fit(MODEL, gpu="h100", concurrency=8).to_dict()["speed"][
        "estimate"
    ]["error"]  # fmt: skip


def test_another_model_is_by_its_bytes_and_wider(tmp_path: Path) -> None:
    """Weights of twice the bytes take twice the time; the error says that it is another model."""
    half = Reads(READS.weights_bytes // 2, READS.token_bytes)
    found = estimate(folder(tmp_path, reads=half._asdict()))
    weights = 0.006 + 8 * 1e-5

    assert found["decode_step_s"] == pytest.approx(2 * weights + 8 * 4e-8 * 4096)
    assert 0.2 == pytest.approx(found["error"])


def test_advise_uses_it_where_it_applies(tmp_path: Path) -> None:
    """The measured card is estimated by the measurement, another as ever."""
    asked: dict[str, Any] = {"users": 8, "context": "4k"}
    path = folder(tmp_path)
    own = kvplan.advise(MODEL, gpu="h100,a100", calibration=path, **asked).to_dict()
    ever = kvplan.advise(MODEL, gpu="h100,a100", **asked).to_dict()
    times = [{row["gpu"]: row["tpot_s"] for row in reversed(one["options"])} for one in (own, ever)]
    assert times[0]["h100-sxm-80gb"] != times[1]["h100-sxm-80gb"]
    assert times[0]["a100-sxm-80gb"] == times[1]["a100-sxm-80gb"]


def test_simulate_steps_as_measured(tmp_path: Path) -> None:
    """One request alone takes its prefill and its steps."""
    answer = kvplan.simulate(
        MODEL, gpu="h100", requests=1, concurrency=1, prompt=100, output=11,
        calibration=folder(tmp_path),
    )  # fmt: skip
    found = answer.to_dict()["tpot_s"]["mean"]

    assert found == pytest.approx(0.006 + 1e-5 + 4e-8 * 105, rel=0.02)


@pytest.mark.parametrize(
    ("changed", "asked", "message"),
    [
        ({"engine": "sglang"}, {}, "is of sglang, and vllm is planned"),
        ({"card": "l4"}, {}, "is of l4, and h100-sxm-80gb is planned"),
        ({"reads": None}, {}, "does not know what its model reads"),
    ],
)
def test_a_calibration_of_something_else_is_refused(
    tmp_path: Path, changed: dict[str, Any], asked: dict[str, Any], message: str
) -> None:
    """Another engine, another card, or a model whose bytes were not known."""
    with pytest.raises(BadValue, match=message):
        estimate(folder(tmp_path, **changed), **asked)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"engine": 1}', "nonsense", "[" * 100_000],
)
def test_a_file_that_is_no_calibration(tmp_path: Path, text: str) -> None:
    """Any file is refused in a sentence."""
    (tmp_path / "calibration.json").write_text(text)

    with pytest.raises(BadFile, match="is no calibration of kvplan measure"):
        read_calibration(tmp_path)


@pytest.mark.parametrize("value", [-1, 1e9, "NaN", None])
def test_figures_that_are_none(tmp_path: Path, value: object) -> None:
    """A time below nothing, of a year, or of no number is no calibration."""
    decode = {**MEASURED.to_dict()["decode"], "fixed_s": value}

    with pytest.raises(BadFile, match="is no calibration"):
        read_calibration(folder(tmp_path, decode=decode))


def test_no_folder() -> None:
    """What is not there is said, with how to make it."""
    with pytest.raises(SourceUnreachable, match="kvplan measure URL --prompt 128,2k"):
        read_calibration("/nowhere")


def test_a_measurement_of_two_lengths_is_a_calibration() -> None:
    """A server of known steps: what is found is what it does."""
    server = Caching(step_s=0.01)
    with caching(server) as made:
        answer = kvplan.measure(
            made.address, prompt="32,256", output=8, concurrency=1, requests=3, prefix="off",
            gpu="h100", predict_from=MODEL,
        )  # fmt: skip
    found = answer.calibration

    assert found is not None
    assert ("vllm", "0.19.0", "h100-sxm-80gb", READS) == (
        found.engine, found.version, found.card, found.reads,
    )  # fmt: skip
    assert 0.01 == pytest.approx(found.decode.seconds(1, 100), rel=0.5)


def test_a_question_of_names_alone_opens_no_calibration(tmp_path: Path) -> None:
    """What a page asks names no file of the machine."""
    with reach.names_alone(), pytest.raises(BadValue, match="--calibration"):
        read_calibration(folder(tmp_path))
