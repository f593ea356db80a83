"""What all charts share: Altair where it is installed, and colours."""

from __future__ import annotations

from typing import Any

from kvplan.core.errors import not_installed

# Okabe and Ito's colours, told apart with any colour vision; their black is a grey here, which is
# seen on a dark page too, and two more greys tell the ninth and the tenth from the others.
COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#808080", "#F0E442",
    "#B8B8B8", "#595959",
)  # fmt: skip

# Labels of an axis of tokens, as people write lengths: 32k is 32,768.
TOKENS = (
    "datum.value >= 1048576 ? format(datum.value / 1048576, '~r') + 'm' : "
    "datum.value >= 1024 ? format(datum.value / 1024, '~r') + 'k' : format(datum.value, ',d')"
)


def token_ticks(longest: int, most: int = 6) -> list[int]:
    """Round lengths from nothing to the longest, at most so many steps: powers of two apart."""
    step = 1
    while longest // step > most:
        step *= 2
    return list(range(0, longest + 1, step))


def load_altair() -> Any:
    """Altair.

    Raises:
        BadValue: the ``plot`` extra is not installed.
    """
    try:
        import altair
        import vl_convert  # noqa: F401  (what altair saves pictures with)
    except ImportError:
        raise not_installed("A plot needs the plot extra", "plot") from None
    return altair


def colours(count: int) -> list[str]:
    """So many colours, from the first again after the last."""
    return [COLOURS[i % len(COLOURS)] for i in range(count)]
