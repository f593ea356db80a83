"""The version behind a log that does not state it, by what only some versions print."""

from __future__ import annotations

from dataclasses import dataclass

from kvplan.logs.facts import Start

# The lines of v1/core/kv_cache_utils.py that print the pool's tokens and its concurrency, and the
# release that has them there first, by the order of the lines. They are no count of releases:
# 0.20.1 took the old arithmetic out, 0.28.0 made the two one message and moved code away.
VLLM_LINES: tuple[tuple[int, int, str], ...] = (
    (634, 637, "0.8.5"), (715, 719, "0.9.1"), (716, 720, "0.9.2"), (833, 837, "0.10.0"),
    (849, 853, "0.10.1"), (864, 868, "0.10.2"), (1087, 1091, "0.11.0"), (1229, 1234, "0.11.1"),
    (1286, 1291, "0.12.0"), (1291, 1296, "0.13.0"), (1305, 1310, "0.14.0"), (1307, 1312, "0.15.0"),
    (1314, 1319, "0.17.0"), (1316, 1321, "0.18.0"), (1319, 1324, "0.19.0"), (1708, 1709, "0.20.1"),
    (1710, 1711, "0.21.0"), (1711, 1716, "0.20.0"), (1733, 1734, "0.22.0"), (1744, 1745, "0.23.0"),
    (1870, 1870, "0.28.0"), (2033, 2033, "0.29.0"), (2146, 2147, "0.24.0"), (2177, 2178, "0.26.0"),
    (2235, 2236, "0.27.0"), (2328, 2328, "0.32.0"), (2396, 2396, "0.30.0"), (2465, 2465, "0.31.0"),
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
        version = _printed_by(int(line), start.number("kv_cache_utils_next_line"))
        how = f"kv_cache_utils.py:{int(line)} printed the pool, as in {version}: planned as that."
        return Likely(version, False, how)
    if start.number("num_cpu_blocks") is not None or _v0_error(start):
        return Likely(V0, False, f"The lines are those of V0: planned as {V0}.")
    return None


def _printed_by(line: int, following: int | float | None) -> str:
    """The release whose lines these are, else the nearest that has them less far down.

    Of builds between releases the distance of the two prints tells the side of 0.20.1 and of
    0.28.0 that they are on: 3 to 5 lines, 1, none.
    """
    apart = None if following is None else _near(line, following)
    alike = [row for row in VLLM_LINES if apart is None or _near(row[0], row[1]) == apart]
    return max((row for row in alike if row[0] <= line), default=alike[0])[2]


def _near(tokens: int, concurrency: int | float) -> float:
    return max(0, min(concurrency - tokens, 2))


def _v0_error(start: Start) -> bool:
    return any("stored in KV cache" in failure.text for failure in start.failures)
