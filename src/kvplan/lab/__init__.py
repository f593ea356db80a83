"""Real caches on a real model: what each holds, costs, and does to the answers.

    layouts      bytes that each cache holds, predicted              arithmetic alone
    kinds        the caches by name: made, and predicted
    caches/      the caches, one a file, as transformers' ``Cache``  torch
    loading      a model and its tokenizer, by name, folder or file
    engine       a prompt in, an answer out, everything measured on the way
    quality      perplexity on a long text; needles, facts in it
    batch        requests with one system prompt through one pool of pages
    experiment   the verb: each cache through all of these ─► answer

The module is also the verb: ``kvplan.lab(caches="full,int4")`` runs it.
"""

import sys
from inspect import Signature, signature
from types import ModuleType
from typing import Any


class _Verb(ModuleType):
    """A package that answers when it is called, as the functions of the other verbs do."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from kvplan.lab.experiment import lab

        return lab(*args, **kwargs)

    @property
    def __signature__(self) -> Signature:
        from kvplan.lab.experiment import lab

        return signature(lab)


sys.modules[__name__].__class__ = _Verb
