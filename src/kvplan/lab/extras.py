"""torch and transformers, where they are installed; threads that do not spin on each other."""

from __future__ import annotations

import os
from typing import Any

from kvplan.core.errors import BadValue
from kvplan.core.units import parse_count
from kvplan.measuring.embedded.settings import default_threads

MOST_THREADS = 1024


def load_torch(threads: int | None = None) -> Any:
    """torch, computing with so many threads: one on a small machine, unless told otherwise.

    Raises:
        BadValue: the ``lab`` extra is not installed, or no such number of threads.
    """
    count = (
        default_threads() if threads is None else parse_count(threads, "--threads", MOST_THREADS)
    )
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars of others, which would cut through ours
    try:
        import torch
        import transformers
    except ImportError:
        raise BadValue(
            "The lab needs torch and transformers, which are not installed.",
            "Install them with: pip install 'kvplan[lab]'",
        ) from None
    torch.set_num_threads(count)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return torch
