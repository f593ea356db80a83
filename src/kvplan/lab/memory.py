"""The most memory in use while something runs: the card's as torch counts it, or the process's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"  # Linux, Documentation/filesystems/proc.rst: resets VmHWM


class PeakMemory:
    """``num_bytes`` after the context: the peak within it; None where the system does not tell."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.num_bytes: int | None = None

    def __enter__(self) -> PeakMemory:
        if self.device.startswith("cuda"):
            import torch

            torch.cuda.reset_peak_memory_stats(self.device)
            return self
        try:
            CLEAR.write_text(RESET_PEAK)
            self.can_tell = True
        except OSError:
            self.can_tell = False
        return self

    def __exit__(self, *_: Any) -> None:
        if self.device.startswith("cuda"):
            import torch

            self.num_bytes = int(torch.cuda.max_memory_allocated(self.device))
        elif self.can_tell:
            self.num_bytes = _peak_resident()


def _peak_resident() -> int | None:
    """VmHWM of this process, which Linux gives in KiB."""
    try:
        for line in STATUS.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        return None
    return None
