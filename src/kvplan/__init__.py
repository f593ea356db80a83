"""kvplan: size, fit and explain the KV cache of any language model.

>>> import kvplan
>>> kvplan.size("llama-3.1-8b", context="32k").bytes(32768)
4294967296
"""

from kvplan._version import __version__
from kvplan.core.errors import KvplanError
from kvplan.planning.fit import FitAnswer, fit
from kvplan.planning.size import SizeAnswer, SizeAnswers, size

__all__ = [
    "FitAnswer",
    "KvplanError",
    "SizeAnswer",
    "SizeAnswers",
    "__version__",
    "fit",
    "size",
]
