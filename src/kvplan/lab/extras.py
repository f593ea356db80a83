"""torch and transformers, where they are installed; threads that do not spin on each other."""

from __future__ import annotations

from typing import Any

from kvplan.core.errors import BadValue
from kvplan.measuring.embedded.settings import default_threads

MAX_THREADS = 1024


def load_torch(threads: int | None = None) -> Any:
    """torch, computing with so many threads: one on a small machine, unless told otherwise.

    Raises:
        BadValue: the ``lab`` extra is not installed.
    """
    try:
        import torch
        import transformers
    except ImportError:
        raise BadValue(
            "The lab needs torch and transformers, which are not installed.",
            "Install them with: pip install 'kvplan[lab]'",
        ) from None
    torch.set_num_threads(threads or default_threads())
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return torch
