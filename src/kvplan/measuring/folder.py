"""Everything that was measured, as a folder that others can read.

    answer.json          the answer as --json prints it
    environment.json     where it was made
    requests.parquet     a row a request: what was asked, what came, how it failed
    chunks.parquet       a row a chunk: when, and how many tokens
    server.parquet       a row a figure of the server's metrics, whenever they were read
    calibration.json     what ``--calibration`` takes, where there are enough lengths

Times are seconds from the beginning of the first phase. No key, no header and no prompt is in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final

from kvplan.core.errors import BadFile, SourceUnreachable, not_installed
from kvplan.measuring.answer import MeasureAnswer
from kvplan.measuring.summary import Measured

ANSWER, ENVIRONMENT, CALIBRATION = "answer.json", "environment.json", "calibration.json"
MOST_ANSWER: Final = 64 << 20


def write(answer: MeasureAnswer, folder: str | Path) -> list[str]:
    """Write a folder, making it where it is not there; the names of its files.

    Raises:
        SourceUnreachable: it cannot be written.
        BadValue: pyarrow is not installed.
    """
    path = make_folder(folder)
    measured = answer.experiment.measured
    start = min((one.started_s for one in measured), default=0.0)
    try:
        _json(path / ANSWER, answer.to_dict())
        _json(path / ENVIRONMENT, answer.environment)
        written = [ANSWER, ENVIRONMENT]
        if answer.calibration is not None:
            _json(path / CALIBRATION, answer.calibration.to_dict())
            written.append(CALIBRATION)
        for name, rows in (
            ("requests", _requests(measured, start)),
            ("chunks", _chunks(measured, start)),
            ("server", _server(measured, start)),
        ):
            _parquet(path / f"{name}.parquet", rows)
            written.append(f"{name}.parquet")
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be written: {error.strerror or error}.") from None
    return written


def make_folder(folder: str | Path) -> Path:
    """The folder, made where it is not there: before a measurement, so that it can be kept.

    Raises:
        SourceUnreachable: it cannot be written.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=path):
            return path
    except OSError as error:
        raise SourceUnreachable(f"{path} cannot be written: {error.strerror or error}.") from None


def read_answer(folder: str | Path) -> dict[str, Any]:
    """The answer in a folder.

    Raises:
        SourceUnreachable: there is none.
        BadFile: it is none of ours.
    """
    path = Path(folder) / ANSWER
    try:
        with path.open("rb") as file:
            data = file.read(MOST_ANSWER + 1)
    except OSError as error:
        raise SourceUnreachable(
            f"{path} cannot be read: {error.strerror or error}.",
            "A folder of measurements is what kvplan measure -o FOLDER writes.",
        ) from None
    try:
        found = json.loads(data)
        are_runs = all(isinstance(run, dict) for run in found["runs"])
        if len(data) <= MOST_ANSWER and found["verb"] == "measure" and are_runs:
            return dict(found)
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    raise BadFile(f"{path} is no answer of kvplan measure.")


def _json(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def _parquet(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise not_installed("A folder of measurements needs pyarrow", "measure") from None
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


def _requests(measured: Iterable[Measured], start: float) -> Iterable[dict[str, Any]]:
    for phase, one in enumerate(measured):
        for index, record in enumerate(one.records):
            planned, reply = record.planned, record.reply
            yield {
                "phase": phase,
                "request": index,
                "prefix": one.phase.kind,
                "concurrency": one.phase.concurrency,
                "rate": one.phase.rate,
                "reuse": one.phase.reuse,
                "pressure": one.phase.pressure,
                "asked_prompt_tokens": planned.prompt_tokens,
                "asked_output_tokens": planned.output_tokens,
                "known_tokens": planned.known_tokens,
                "due_s": record.due_s - start,
                "sent_s": reply.sent_s - start,
                "first_token_s": reply.arrived[0].at_s - start if reply.arrived else None,
                "ended_s": reply.ended_s - start,
                "prompt_tokens": reply.prompt_tokens,
                "output_tokens": reply.tokens,
                "cached_tokens": reply.cached_tokens,
                "finish_reason": reply.finish_reason,
                "failure": reply.failure,
                "detail": reply.detail or None,
                "resent": reply.is_resent,
            }


def _chunks(measured: Iterable[Measured], start: float) -> Iterable[dict[str, Any]]:
    for phase, one in enumerate(measured):
        for index, record in enumerate(one.records):
            for chunk in record.reply.timed():
                yield {
                    "phase": phase,
                    "request": index,
                    "at_s": chunk.at_s - start,
                    "tokens": chunk.tokens,
                }


def _server(measured: Iterable[Measured], start: float) -> Iterable[dict[str, Any]]:
    for phase, one in enumerate(measured):
        for sample in one.watched.samples:
            figures = dict(sample.figures)
            if sample.memory_bytes is not None:
                figures["memory_bytes"] = float(sample.memory_bytes)
            for name, value in figures.items():
                yield {
                    "phase": phase,
                    "at_s": sample.at_s - start,
                    "figure": name,
                    "value": float(value),
                }
