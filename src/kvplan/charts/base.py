"""What all charts share: Altair where it is installed, and colours."""

from __future__ import annotations

from typing import Any

from kvplan.core.errors import BadValue

# Okabe and Ito's colours, told apart with any colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")


def load_altair() -> Any:
    """Altair.

    Raises:
        BadValue: the ``plot`` extra is not installed.
    """
    try:
        import altair
        import vl_convert  # noqa: F401  (what altair saves pictures with)
    except ImportError:
        raise BadValue(
            "A plot needs the plot extra, which is not installed.",
            "Install it with: pip install 'kvplan[plot]'",
        ) from None
    return altair


def colours(count: int) -> list[str]:
    """So many colours, from the first again after the last."""
    return [COLOURS[i % len(COLOURS)] for i in range(count)]
