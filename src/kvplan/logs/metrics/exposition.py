"""Lines of the Prometheus text format, one at a time and bounded.

    vllm:num_requests_running{engine="0",model_name="a"} 3.0 1700000000000
    # TYPE vllm:num_requests_running gauge

A dump is untrusted text: a line that is not a sample is passed over, so that a prompt of the shell,
a cut line or a page around it do no harm (prometheus-client's parser ends at the first one).
Format: https://prometheus.io/docs/instrumenting/exposition_formats/, version 0.0.4.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

MAX_LINE: Final = (
    16_384  # cache_config_info of vLLM 0.32 has forty labels in two thousand characters
)
MAX_LABELS: Final = 256

_NAME = re.compile(r"\s*([A-Za-z_:][A-Za-z0-9_:]{0,255})\s*")
_LABEL = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]{0,255})\s*=\s*"((?:[^"\\]|\\.)*)"\s*')
_VALUE = re.compile(
    r"\s*([+-]?(?:\d{1,32}(?:\.\d{0,32})?|\.\d{1,32})(?:[eE][+-]?\d{1,4})?|[+-]?Inf|NaN)(?=\s|$)"
)
_ESCAPED = re.compile(r"\\(.)")
_HELP = re.compile(r"# HELP ([A-Za-z_:][A-Za-z0-9_:]{0,255}) (.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """A series' value: its name in one spelling, its labels, and a number that is finite."""

    name: str
    labels: dict[str, str]
    value: float


def canonical(name: str) -> str:
    """A name without what exporters differ in: ``ray_vllm_x``, ``vllm:x_total`` are ``vllm_x``."""
    return name.removeprefix("ray_").replace(":", "_").removesuffix("_total")


def sample(line: str) -> Sample | None:
    """The sample of a line, or None where the line is none or its value is not a number."""
    if len(line) > MAX_LINE:
        return None
    name = _NAME.match(line)
    if not name:
        return None
    labels, end = _labels(line, name.end())
    found = _VALUE.match(line, end) if labels is not None else None
    if labels is None or not found:
        return None
    value = float(found[1])
    if not math.isfinite(value):
        return None
    return Sample(name=canonical(name[1]), labels=labels, value=value)


def help_of(line: str) -> tuple[str, str] | None:
    """The series that a HELP line describes, and its words."""
    found = _HELP.match(line) if len(line) <= MAX_LINE else None
    return (canonical(found[1]), found[2]) if found else None


def _labels(line: str, start: int) -> tuple[dict[str, str] | None, int]:
    """The labels that begin at ``start`` and where they end; None where they do not close."""
    labels: dict[str, str] = {}
    if not line.startswith("{", start):
        return labels, start
    end = start + 1
    while len(labels) < MAX_LABELS and (found := _LABEL.match(line, end)):
        labels[found[1]] = _ESCAPED.sub(_unescaped, found[2]) if "\\" in found[2] else found[2]
        end = found.end()
        if not line.startswith(",", end):
            break
        end += 1
    while line.startswith(" ", end):
        end += 1
    return (labels, end + 1) if line.startswith("}", end) else (None, end)


def _unescaped(found: re.Match[str]) -> str:
    return "\n" if found[1] == "n" else found[1]
