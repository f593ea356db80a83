"""The version behind a log that does not state it, by what only some versions print."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from kvplan.logs.facts import Start

# Where v1/core/kv_cache_utils.py prints the size of the pool, and the release that did so first,
# as start-up reports with a version show.
VLLM_LINES: tuple[tuple[int, str], ...] = (
    (634, "0.8.5"), (716, "0.9.2"), (775, "0.10.0"), (849, "0.10.1"), (864, "0.10.2"),
    (1087, "0.11.0"), (1229, "0.11.1"), (1286, "0.12.0"), (1291, "0.13.0"), (1305, "0.14.0"),
    (1307, "0.15.0"), (1314, "0.16.0"), (1319, "0.19.0"), (1711, "0.20.0"), (1733, "0.21.0"),
    (1766, "0.22.0"), (2146, "0.25.0"), (2235, "0.26.0"), (2321, "0.29.0"),
)  # fmt: skip
V0 = "0.6.6"


@dataclass(frozen=True, slots=True)
class Likely:
    """A version, whether the log states it, and what tells it where it does not."""

    version: str
    stated: bool
    how: str = ""


def likely_version(start: Start) -> Likely | None:
    """The version that a start states or shows; None where it shows none."""
    if start.version:
        return Likely(start.version, True)
    if start.engine != "vllm":
        return None
    line = start.number("kv_cache_utils_line")
    if line is not None:
        place = max(0, bisect_right(VLLM_LINES, int(line), key=lambda row: row[0]) - 1)
        version = VLLM_LINES[place][1]
        how = f"kv_cache_utils.py:{int(line)} printed the pool, as in {version}: planned as that."
        return Likely(version, False, how)
    if start.number("num_cpu_blocks") is not None or _v0_error(start):
        return Likely(V0, False, f"The lines are those of V0: planned as {V0}.")
    return None


def _v0_error(start: Start) -> bool:
    return any("stored in KV cache" in failure.text for failure in start.failures)
