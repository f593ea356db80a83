"""kvplan: size, fit and explain the KV cache of any language model.

>>> import kvplan
>>> kvplan.size("llama-3.1-8b", context="32k").bytes(32768)
4294967296
"""

from importlib import import_module
from typing import TYPE_CHECKING

from kvplan._version import __version__
from kvplan.planning.answer import Answer

if TYPE_CHECKING:
    from kvplan.core.errors import KvplanError
    from kvplan.lab.answer import LabAnswer
    from kvplan.lab.experiment import lab
    from kvplan.measuring.answer import MeasureAnswer
    from kvplan.measuring.measure import measure
    from kvplan.planning.advise import AdviseAnswer, advise
    from kvplan.planning.explain import ExplainAnswer, explain
    from kvplan.planning.fit import FitAnswer, fit
    from kvplan.planning.size import SizeAnswer, SizeAnswers, size
    from kvplan.simulation.prefix.answer import PrefixAnswer
    from kvplan.simulation.prefix.ask import prefix
    from kvplan.simulation.simulate import SimulateAnswer, simulate

__all__ = [
    "AdviseAnswer",
    "ExplainAnswer",
    "FitAnswer",
    "KvplanError",
    "LabAnswer",
    "MeasureAnswer",
    "PrefixAnswer",
    "SimulateAnswer",
    "SizeAnswer",
    "SizeAnswers",
    "__version__",
    "advise",
    "explain",
    "fit",
    "lab",
    "measure",
    "prefix",
    "simulate",
    "size",
]

# Where each name is; a module is imported when a name of it is first used, so that the command and
# a program that asks one question start fast.
_HOMES = {
    "AdviseAnswer": "kvplan.planning.advise",
    "advise": "kvplan.planning.advise",
    "KvplanError": "kvplan.core.errors",
    "ExplainAnswer": "kvplan.planning.explain",
    "explain": "kvplan.planning.explain",
    "FitAnswer": "kvplan.planning.fit",
    "fit": "kvplan.planning.fit",
    "LabAnswer": "kvplan.lab.answer",
    "lab": "kvplan.lab",
    "MeasureAnswer": "kvplan.measuring.answer",
    "measure": "kvplan.measuring.measure",
    "PrefixAnswer": "kvplan.simulation.prefix.answer",
    "prefix": "kvplan.simulation.prefix.ask",
    "SimulateAnswer": "kvplan.simulation.simulate",
    "simulate": "kvplan.simulation.simulate",
    "SizeAnswer": "kvplan.planning.size",
    "SizeAnswers": "kvplan.planning.size",
    "size": "kvplan.planning.size",
}


def _in_a_notebook(answer: Answer) -> str:
    from kvplan.notebook import html

    return html(answer)


Answer.shown_by = staticmethod(_in_a_notebook)


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'kvplan' has no attribute {name!r}")
    module = import_module(home)
    # A package that is a verb: importing it binds it here, and it is called as it is.
    found = module if home == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
