"""Many runs at once: on all cores of this machine, or on a Ray cluster that is already there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any, Final

from kvplan.core.errors import BadValue

BACKENDS: Final = ("loky", "ray")


def in_parallel(
    act: Callable[..., Any],
    calls: Sequence[tuple[Any, ...]],
    *,
    backend: str,
    jobs: int,
) -> Iterator[Any]:
    """What ``act`` returns of each call, in the order in which they end.

    Raises:
        BadValue: no such backend, or no Ray, or no cluster.
    """
    if backend not in BACKENDS:
        raise BadValue(
            f"There is no backend {backend[:40]!r}.", f"Known: {', '.join(BACKENDS)}."
        )
    if not isinstance(jobs, int) or jobs == 0 or jobs < -1:
        raise BadValue(
            f"--jobs {jobs} is no number of runs at once.", "-1 is all cores."
        )
    if backend == "loky" and (jobs == 1 or len(calls) == 1):
        yield from (act(*call) for call in calls)
        return
    import joblib

    with _backend(backend):
        pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        yield from pool(joblib.delayed(act)(*call) for call in calls)


def _backend(name: str) -> AbstractContextManager[Any]:
    """The one of joblib, or its Ray backend on the cluster that ``RAY_ADDRESS`` or ``auto`` finds."""
    if name == "loky":
        return nullcontext()
    if find_spec("ray") is None:
        raise BadValue(
            "--backend ray needs Ray, which is not installed.",
            "Install it with: pip install 'kvplan[ray]'",
        )
    import joblib
    import ray
    from ray.util.joblib import register_ray

    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False, logging_level="error")
        except ConnectionError:
            raise BadValue(
                "No Ray cluster is running here.",
                "Start one with ray start --head, or name it in RAY_ADDRESS.",
            ) from None
    register_ray()
    found: AbstractContextManager[Any] = joblib.parallel_config(backend="ray")
    return found
