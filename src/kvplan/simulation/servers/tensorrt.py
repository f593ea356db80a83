"""TensorRT-LLM's scheduler: a request starts only if it can finish, so that nobody gives way.

    capacity scheduler    GUARANTEED_NO_EVICT: blocks of prompts and whole answers are set aside
    batch scheduler       a token of each that generates, then prompts up to max_num_tokens

cpp/tensorrt_llm/batch_manager: capacityScheduler.cpp, microBatchScheduler.cpp (1.0). Blocks are
reused through a radix tree (enable_block_reuse, on by default). Prompts are whole in one step
unless chunked prefill is on, which is off by default. While others generate, prompts can be held
back until there are enough of them: batch_wait_timeout_iters and batch_wait_max_tokens_ratio, both
0 by default (llmapi/llm_args.py), and without either nobody is held back
(_torch/pyexecutor/py_executor.py, _waiting_requests, 1.1). What counts are the tokens to compute,
without those that are reused, as in later versions; 1.1 itself counted whole prompts.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kvplan.core.step import Chunk
from kvplan.core.units import round_up
from kvplan.simulation.servers.base import Batch, Request
from kvplan.simulation.servers.radix_server import RadixServer


@dataclass(slots=True, kw_only=True)
class TensorRTServer(RadixServer):
    """One copy; ``max_batch`` sequences, ``batched_tokens`` tokens of a step."""

    max_len: int
    max_batch: int
    batched_tokens: int
    chunked: bool = False
    wait_steps: int = 0
    wait_share: float = 0.0
    waited: int = 0
    step: list[tuple[Request, int]] = field(default_factory=list)  # prompts, and how many tokens
    decoding: list[Request] = field(default_factory=list)

    def refuses(self, request: Request) -> str:
        """Longer than a sequence, than the pool, or than a step where prompts are not cut."""
        need = request.prompt + request.output
        if need > self.max_len:
            return f"{need:,} tokens, and the longest sequence has {self.max_len:,}"
        if round_up(need, self.page) > self.tokens:
            return f"{need:,} tokens in a pool of {self.tokens:,}"
        if request.prompt > self.batched_tokens and not self.chunked:
            return f"a prompt of {request.prompt:,} tokens in a step of {self.batched_tokens:,}"
        return ""

    def plan_step(self) -> Batch | None:
        """Admission by what everybody still needs, then the step."""
        self.admitted.clear()
        self._admit()
        self.decoding = [request for request in self.running if request.generated]
        self._fill(self.batched_tokens - len(self.decoding))
        if self._holds_back():
            self.step = []
        for request in self.decoding:
            self.grow(request, request.known)
        for request, length in self.step:
            self.grow(request, request.computed + length)
        if not self.running:
            return None
        chunks = [Chunk(request.computed, length) for request, length in self.step]
        return Batch([r.known for r in self.decoding], chunks, loads_s=self.take_loading())

    def end_step(self) -> list[Request]:
        """Tokens come out; what is done stays in the tree."""
        for request, length in self.step:
            self.compute(request, length)
            if not request.left:
                self.emit(request)
        for request in self.decoding:
            request.computed += 1
            self.emit(request)
        finished = [request for request in self.running if request.done]
        if finished:
            self.running = [request for request in self.running if not request.done]
        for request in finished:
            self.release(request, keep=True)
        return finished

    def quiet_steps(self) -> int:
        """Until the next answer is whole: whoever waits has no room before that."""
        if self.step or not self.decoding or len(self.decoding) < len(self.running):
            return 0
        return min(request.remaining for request in self.decoding) - 1

    def skip(self, steps: int) -> None:
        """Pages were promised at admission."""
        self.decoded(self.decoding, steps)

    def needed(self, request: Request) -> int:
        """Tokens of pages that a request will still take until it is done."""
        held = self.held.get(request)
        there = held.shared + held.own if held else 0
        return max(0, round_up(request.prompt + request.output, self.page) - there)

    def _admit(self) -> None:
        """First come, while what is free covers all that runs to its end, and one more."""
        if not self.waiting:
            return
        promised = sum(self.needed(request) for request in self.running)
        while self.waiting and len(self.running) < self.max_batch:
            request = self.waiting[0]
            match = self.tree.match(self.key(request, request.prompt))
            before = self.tree.evictable
            self.tree.lock(match.node)
            hit = self.reusable(request, match.tokens)
            need = round_up(request.prompt + request.output, self.page) - hit
            if promised + need > self.free + self.tree.evictable:
                self.tree.unlock(match.node)
                assert before == self.tree.evictable
                return
            promised += need
            self.start(request, hit, match.node)
            self.running.append(self.waiting.pop(0))

    def _holds_back(self) -> bool:
        """Whether this step leaves its prompts for a later one, that they may be more.

        Not where nobody generates; and not for longer than ``wait_steps``.
        """
        if not self.wait_steps or not self.step or not self.decoding:
            return False
        tokens = len(self.decoding) + sum(length for _, length in self.step)
        enough = tokens >= self.wait_share * self.batched_tokens
        if enough or self.waited >= self.wait_steps:
            self.waited = 0
            return False
        self.waited += 1
        return True

    def _fill(self, room: int) -> None:
        """Prompts in the order of admission, as far as the step goes."""
        self.step = []
        for request in self.running:
            if request.generated or room <= 0:
                continue
            length = request.left if not self.chunked else min(request.left, room)
            if length > room and self.step:
                return
            self.step.append((request, length))
            room -= length
