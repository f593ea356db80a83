"""kvplan: size, fit and explain the KV cache of any language model.

>>> import kvplan
>>> kvplan.size("llama-3.1-8b", context="32k").bytes(32768)
4294967296
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kvplan._version import __version__

if TYPE_CHECKING:
    from kvplan.core.errors import KvplanError
    from kvplan.measuring.answer import MeasureAnswer
    from kvplan.measuring.measure import measure
    from kvplan.planning.explain import ExplainAnswer, explain
    from kvplan.planning.fit import FitAnswer, fit
    from kvplan.planning.size import SizeAnswer, SizeAnswers, size
    from kvplan.simulation.prefix.answer import PrefixAnswer
    from kvplan.simulation.prefix.ask import prefix
    from kvplan.simulation.simulate import SimulateAnswer, simulate

__all__ = [
    "ExplainAnswer",
    "FitAnswer",
    "KvplanError",
    "MeasureAnswer",
    "PrefixAnswer",
    "SimulateAnswer",
    "SizeAnswer",
    "SizeAnswers",
    "__version__",
    "explain",
    "fit",
    "measure",
    "prefix",
    "simulate",
    "size",
]

# Where each name is; a module is imported when a name of it is first used, so that the command and
# a program that asks one question start fast.
_HOMES = {
    "PrefixAnswer": "kvplan.simulation.prefix.answer",
    "prefix": "kvplan.simulation.prefix.ask",
    "KvplanError": "kvplan.core.errors",
    "ExplainAnswer": "kvplan.planning.explain",
    "explain": "kvplan.planning.explain",
    "FitAnswer": "kvplan.planning.fit",
    "fit": "kvplan.planning.fit",
    "MeasureAnswer": "kvplan.measuring.answer",
    "measure": "kvplan.measuring.measure",
    "SimulateAnswer": "kvplan.simulation.simulate",
    "simulate": "kvplan.simulation.simulate",
    "SizeAnswer": "kvplan.planning.size",
    "SizeAnswers": "kvplan.planning.size",
    "size": "kvplan.planning.size",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kvplan' has no attribute {name!r}")
    found = getattr(import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
