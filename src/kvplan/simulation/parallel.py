"""Many runs at once: on all cores of this machine, or on a Ray cluster that is already there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Final

from kvplan.core.device import Device
from kvplan.core.errors import BadValue
from kvplan.readers.devices import own_devices, with_own

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
        raise BadValue(f"There is no backend {backend[:40]!r}.", f"Known: {', '.join(BACKENDS)}.")
    if not isinstance(jobs, int) or jobs == 0 or jobs < -1:
        raise BadValue(f"--jobs {jobs} is no number of runs at once.", "-1 is all cores.")
    own = own_devices()
    told = [(act, own, *call) for call in calls]
    if backend == "loky" and (jobs == 1 or len(calls) == 1):
        yield from (_with_own(*call) for call in told)
        return
    run = _on_cores if backend == "loky" else _on_ray
    yield from run(_with_own, told, jobs)


def _with_own(act: Callable[..., Any], own: tuple[Device, ...], *call: Any) -> Any:
    """The act in another process, which knows one's own cards no other way."""
    with with_own(own):
        return act(*call)


def _on_cores(
    act: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int
) -> Iterator[Any]:
    import joblib

    pool = joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
    yield from pool(joblib.delayed(act)(*call) for call in calls)


def _on_ray(act: Callable[..., Any], calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[Any]:
    """Tasks of Ray's own: its joblib backend returns everything at the end, and a sweep that is
    stopped would have kept nothing.
    """
    ray = _cluster()
    task = ray.remote(act)
    most = int(ray.cluster_resources().get("CPU", 1)) * 2 if jobs == -1 else jobs
    pending: list[Any] = []
    for call in calls:
        if len(pending) >= most:
            done, pending = ray.wait(pending)
            yield ray.get(done[0])
        pending.append(task.remote(*call))
    while pending:
        done, pending = ray.wait(pending)
        yield ray.get(done[0])


def _cluster() -> Any:
    """Ray, connected to the cluster that ``RAY_ADDRESS`` or ``auto`` finds.

    Raises:
        BadValue: no Ray, or no cluster.
    """
    if find_spec("ray") is None:
        raise BadValue(
            "--backend ray needs Ray, which is not installed.",
            "Install it with: pip install 'kvplan[ray]'",
        )
    import ray

    if not ray.is_initialized():
        try:
            ray.init(address="auto", log_to_driver=False, logging_level="error")
        except ConnectionError:
            raise BadValue(
                "No Ray cluster is running here.",
                "Start one with ray start --head, or name it in RAY_ADDRESS.",
            ) from None
    return ray
