"""When requests arrive: processes of a mean rate, each a way to draw the pauses between them.

poisson    without memory; CV 1
gamma      of a coefficient of variation: above 1 bursts, below 1 evenly
constant   one every 1 / rate seconds
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kvplan.core.errors import BadValue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PROCESSES = ("poisson", "gamma", "constant")


def arrivals_s(
    process: str, rate: float, count: int, rng: np.random.Generator, cv: float = 1.0
) -> NDArray[np.float64]:
    """So many times from 0 s on, rising, at ``rate`` a second.

    ``cv`` is the deviation of a gamma process's pauses over their mean.

    Raises:
        BadValue: no such process, or a rate or CV that none has.
    """
    import numpy as np

    if not 0 < rate <= 1e9:
        raise BadValue(f"A rate of {rate:g} requests/s is not above 0 and at most 10^9.")
    if process == "constant":
        return np.arange(count) / rate
    if process == "poisson":
        pauses = rng.exponential(1 / rate, count)
    elif process == "gamma":
        if not 0.01 <= cv <= 100:
            raise BadValue(f"A coefficient of variation of {cv:g} is outside 0.01 to 100.")
        shape = 1 / cv**2
        pauses = rng.gamma(shape, 1 / (rate * shape), count)
    else:
        raise BadValue(f"No arrivals are {process[:40]!r}.", f"Known: {', '.join(PROCESSES)}.")
    pauses[:1] = 0.0
    return np.cumsum(pauses)
