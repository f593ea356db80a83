"""A scrape of /metrics among logs: one reader an engine, whose facts are told at the end.

curl -s http://localhost:8000/metrics | kvplan explain -
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kvplan.logs.facts import Found
from kvplan.logs.lines import Line
from kvplan.logs.metrics.llamacpp import LLAMACPP
from kvplan.logs.metrics.reading import Gathered
from kvplan.logs.metrics.series import Exporter
from kvplan.logs.metrics.sglang import SGLANG
from kvplan.logs.metrics.tgi import TGI
from kvplan.logs.metrics.vllm import VLLM
from kvplan.logs.readers.base import Reader


class ExportedReader(Reader):
    """The series of one engine; ``signs`` are series that each of its scrapes has."""

    exporter: ClassVar[Exporter]

    def __init__(self) -> None:
        self._gathered = Gathered()

    def read(self, line: Line) -> Iterator[Found]:
        """Nothing yet: ranks and replicas make one figure together."""
        if any(mark in line.raw for mark in self.marks):
            alone = line.raw.startswith(("#", *self.marks))
            self._gathered.take(line.number, line.raw if alone else line.text)
        return iter(())

    def finish(self) -> Iterator[Found]:
        """The figures, where any of the engine's series was there."""
        if self._gathered.count(self.exporter):
            yield from self._gathered.reading(self.exporter).facts()


class VllmMetrics(ExportedReader):
    """vLLM's series."""

    engine = "vllm"
    exporter = VLLM
    signs = ("vllm:num_requests_running", "vllm:cache_config_info", "vllm_num_requests_running")
    marks = ("vllm:", "ray_vllm_")


class SglangMetrics(ExportedReader):
    """SGLang's series."""

    engine = "sglang"
    exporter = SGLANG
    signs = ("sglang:num_running_reqs", "sglang:token_usage", "sglang_num_running_reqs")
    marks = ("sglang:", "ray_sglang_")


class LlamaMetrics(ExportedReader):
    """llama.cpp's series."""

    engine = "llama.cpp"
    exporter = LLAMACPP
    signs = ("llamacpp:requests_processing", "llamacpp:prompt_tokens_total")
    marks = ("llamacpp:",)


class TgiMetrics(ExportedReader):
    """TGI's series."""

    engine = "tgi"
    exporter = TGI
    signs = ("tgi_queue_size", "tgi_batch_current_size")
    marks = ("tgi_",)
