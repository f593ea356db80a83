"""SGLang's scheduler: prefills before decodes, a radix tree, and retraction where decodes run dry.

    a step is   a batch of prefills, while one can be made   (schedule_policy.py: PrefillAdder),
                beside it a token of all that run, if asked  (schedule_batch.py: mix_with_running)
                else one token of every running request      (schedule_batch.py: check_decode_mem)

Read in sglang 0.5.12. Left out: overlap's late release, aborts by the client.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from kvplan.core.errors import BadQuestion
from kvplan.core.step import Chunk
from kvplan.core.units import round_up
from kvplan.simulation.servers.base import Batch, Request
from kvplan.simulation.servers.radix import RadixTree
from kvplan.simulation.servers.radix_server import RadixServer
from kvplan.simulation.servers.sglang_budget import CLIP, RETRACT_STEPS, Budget, Ratio

# schedule_policy.py: beyond so many waiting, first come (_determine_active_policy);
# IN_BATCH_PREFIX_CACHING_CHECK_THRESHOLD and …_DEPRIORITIZE_THRESHOLD, in tokens.
LPM_QUEUE: Final = 128
IN_BATCH: Final = 32

ORDERS: Final = ("fcfs", "lpm", "lof", "shortest", "priority")


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangSettings:
    """The flags that the scheduler reads, in tokens.

    ``chunk_tokens`` is ``--chunked-prefill-size`` (None: prompts are never cut) and
    ``prefill_tokens`` ``--max-prefill-tokens``, both of one prefill step. New requests are looked
    for every ``recv_interval`` decode steps, and after each prefill. With ``mixed_chunk``
    (``--enable-mixed-chunk``, nothing without chunks) those that run decode beside prompts.
    """

    max_running: int = 4096
    chunk_tokens: int | None = 8192
    prefill_tokens: int = 16384
    conservativeness: float = 1.0
    recv_interval: int = 1
    policy: str = "fcfs"
    mixed_chunk: bool = False

    @property
    def mixes(self) -> bool:
        """Whether prompts and decodes share steps (scheduler.py: is_mixed_chunk)."""
        return self.mixed_chunk and self.chunk_tokens is not None


@dataclass(slots=True, kw_only=True)
class SglangServer(RadixServer):
    """One copy of SGLang; ``partial`` is the request whose prompt is being cut into chunks."""

    settings: SglangSettings
    ratio: Ratio = field(init=False)
    partial: Request | None = None
    full: bool = False  # batch_is_full: no prefill is tried until a running request leaves
    leaving: int = 0  # done in a decode, and in the running batch until the next one or a mix
    inbox: list[Request] = field(default_factory=list)  # sent, and not looked at yet
    since: int = 0  # decode steps since the last look
    step: list[tuple[Request, int]] = field(default_factory=list)  # prefilling, and how many
    mixed: list[Request] = field(default_factory=list)  # decoding beside them
    decoding: bool = False

    def __post_init__(self) -> None:
        RadixServer.__post_init__(self)
        self.ratio = Ratio(self.settings.conservativeness)

    def refuses(self, request: Request) -> str:
        """A prompt that with its answer is no shorter than the pool (validate_input_length)."""
        most = self.tokens - self.page
        if request.prompt + min(request.output, CLIP) < most:
            return ""
        return f"{request.prompt:,} + {request.output:,} tokens in a pool of {most:,}"

    @property
    def num_waiting(self) -> int:
        """In the queue or in front of it."""
        return len(self.waiting) + len(self.inbox)

    @property
    def num_running(self) -> int:
        """Requests of the running batch, as the scheduler counts them."""
        return len(self.running) + self.leaving

    def add(self, request: Request) -> None:
        """It waits to be looked at."""
        self.inbox.append(request)

    def _receive(self) -> None:
        """New requests enter the queue, if this step looks for them.

        managers/scheduler_recv_skipper.py: a decode step counts 1, a prefill at once; without work
        the loop looks all the time.
        """
        self.since += 1
        is_busy = self.decoding and self.running
        if is_busy and self.since < self.settings.recv_interval:
            return
        self.since = 0
        self.waiting += self.inbox
        self.inbox.clear()

    def plan_step(self) -> Batch | None:
        """A prefill where one can be made, else a decode."""
        self.admitted.clear()
        self._receive()
        self._prefill()
        if self.step:
            self.decoding = False
            self._mix()
            chunks = [Chunk(request.computed, length) for request, length in self.step]
            contexts = [request.known for request in self.mixed]
            return Batch(contexts, chunks, loads_s=self.take_loading())
        if self.leaving:
            self.leaving, self.full = 0, False  # update_running_batch
            if not self.running:
                return self.plan_step()
        self._make_room()
        self.decoding = bool(self.running)
        if not self.decoding:
            self.ratio.idle()
            return None
        self._allocate(self.running)
        return Batch([request.known for request in self.running], [])

    def end_step(self) -> list[Request]:
        """Tokens come out, chunks enter the tree, what is done leaves."""
        if self.decoding:
            return self._end_decode()
        entered, cut = [], []
        for request, length in self.step:
            if length < request.left:
                cut.append((request, length))
                continue
            self.compute(request, length)
            self.partial = None if self.partial is request else self.partial
            self._token(request)
            entered.append(request)
        finished = self._enter(entered)
        for request, length in cut:  # stash_chunked_request: into the tree after all others
            self.compute(request, length)
        self.step.clear()
        return finished

    def quiet_steps(self) -> int:
        """Until the next answer is whole, while nobody waits who could enter and the pool lasts."""
        if self.partial is not None or (self.waiting and not self.full) or not self.running:
            return 0
        page = self.page
        room = (self.free + self.tree.evictable) // page // len(self.running) * page
        looks = self.settings.recv_interval - self.since - 1 if self.inbox else room
        return max(0, min(*(request.remaining for request in self.running), room, looks) - 1)

    def skip(self, steps: int) -> None:
        """Each step lets the ratio decay, and counts until the next look."""
        self.decoded(self.running, steps, spare=self.page * len(self.running))
        self.since = (self.since + steps) % self.settings.recv_interval
        for _ in range(steps):
            self.ratio.decay()

    # Prefill

    def _prefill(self) -> None:
        """Fills ``step`` with the next prefill batch, empty where there is none."""
        self.step = []
        if (self.full or not self.waiting) and self.partial is None:
            return
        budget = self._budget()
        if self.partial is not None:
            self._add_partial(self.partial, budget)
        for request in self._ordered():
            if self.num_running + len(self.step) >= self.settings.max_running:
                self.full = True
                break
            if not self._add(request, budget):
                break
        # All are matched and locked before any page is taken (get_new_batch_prefill), and those are
        # evicted for together, with a page more for each (alloc_paged_token_slots_extend).
        slack = self.page * len(self.step) if self.page > 1 else 0
        self.make_free(sum(length for _, length in self.step) + slack)
        for request, length in self.step:
            self.grow(request, request.computed + length)
        if self.free < 0:  # alloc_for_extend
            raise _ended(f"prompts want {-self.free} tokens more than are free.")
        taken = {request for request, _ in self.step}
        self.waiting = [request for request in self.waiting if request not in taken]

    def _budget(self) -> Budget:
        """Free + evictable − what the running requests are expected to still need."""
        aside = sum(min(r.remaining, CLIP) * self.ratio.now for r in self.running)
        settings = self.settings
        mixed = self.num_running if settings.mixes else 0  # num_mixed_decode_tokens
        return Budget(
            room=self.free + self.tree.evictable - aside - mixed,
            input_tokens=settings.prefill_tokens - mixed,
            chunk_tokens=None if settings.chunk_tokens is None else settings.chunk_tokens - mixed,
        )

    def _ordered(self) -> list[Request]:
        """The waiting requests in the order of the policy (SchedulePolicy.calc_priority)."""
        policy = self.settings.policy
        if policy == "lpm" and len(self.waiting) > LPM_QUEUE:
            policy = "fcfs"
        if policy == "lpm":
            return self._by_prefix()
        keys: dict[str, Callable[[Request], Any]] = {
            "lof": lambda r: -r.output,
            "shortest": lambda r: r.left - self.cached_tokens(r),
            "priority": lambda r: r.priority,
        }
        return sorted(self.waiting, key=keys[policy]) if policy in keys else self.waiting

    def _by_prefix(self) -> list[Request]:
        """The longest cached beginning first (_compute_prefix_matches, _sort_by_longest_prefix).

        Of those that share a beginning which is not there yet one goes, the others come last. What
        is looked for counts as used, and the queue keeps the order.
        """
        queue, found, late = RadixTree(), {}, set()
        for request in self.waiting:
            key = self.key(request, request.known)
            found[request] = self.tree.match(key).tokens
            if found[request] <= IN_BATCH:
                if queue.peek(key) >= IN_BATCH:
                    late.add(request)
                else:
                    queue.insert(key)
        self.waiting.sort(key=lambda r: inf if r in late else -found[r])
        return self.waiting

    def _add_partial(self, request: Request, budget: Budget) -> None:
        """The next chunk of a prompt that was cut (add_chunked_req)."""
        assert budget.chunk_tokens is not None
        most = min(budget.chunk_tokens, int(budget.room))
        length = min(request.left, most if most > 0 else budget.chunk_tokens)
        new = min(request.output, CLIP) if length == request.left else 0
        budget.spend(length, new, self.page)
        self.step.append((request, length))

    def _add(self, request: Request, budget: Budget) -> bool:
        """Takes a request into the batch if it fits (add_one_req); False where the batch ends."""
        page = self.page
        match = self.tree.match(self.sought(request))
        hit = self.reusable(request, match.tokens)
        loaded = self.in_host(request, hit)
        extend = request.known - hit - loaded
        need = request.known - hit + min(request.remaining, CLIP) + page
        if need >= budget.room:
            self.full = True
            return False
        paged = round_up(extend, page)
        if paged >= budget.input_tokens and self.step:
            return False
        # Locking takes the matched path out of what can be evicted.
        before = self.tree.evictable
        self.tree.lock(match.node)
        locked = before - self.tree.evictable
        length = extend
        if budget.chunk_tokens is not None and paged > budget.chunk_tokens:
            length = budget.chunk_tokens // page * page
        if need >= budget.room - locked or length <= 0:
            self.full = need >= budget.room - locked
            self.tree.unlock(match.node)
            return False
        budget.room -= locked + loaded
        self.start(request, hit, match.node)
        # The whole answer, also of one that comes back with a part of it (max_new_tokens).
        budget.spend(length, min(request.output, CLIP) if length == extend else 0, page)
        self.step.append((request, length))
        self.partial = request if length < extend else self.partial
        self.full = budget.room <= 0
        return not self.full and not budget.spent

    # Mixed

    def _mix(self) -> None:
        """Those that run join the prefill batch, each with its next token (get_new_batch_prefill).

        Nobody is retracted and the ratio stays: what admission left has to do, and where it does
        not (alloc_for_decode raises) the engine ends.

        Raises:
            BadQuestion: it does not.
        """
        if not self.settings.mixes:
            return
        self.leaving, self.mixed = 0, self.running.copy()
        free = self._allocate(self.mixed)
        if self.free < 0:
            answers = f"{len(self.mixed)} tokens of answers beside prompts"
            raise _ended(f"{answers}, {free} are free (--enable-mixed-chunk).")

    def _enter(self, entered: list[Request]) -> list[Request]:
        """Requests whose prompts are whole begin to run; those that a step ends leave.

        get_next_batch_to_run: a batch that somebody leaves is not full, and neither is one that
        takes the place of an empty one, as a mixed batch does, its prompts in front.
        """
        for request in self.mixed:
            request.computed += 1
            self._token(request)
        takes_over = bool(self.mixed) or not self.num_running
        ran = entered + self.running if self.mixed else self.running + entered
        self.mixed = []
        finished = self._part(ran)
        if takes_over or finished or self.partial:
            self.full = False
        return finished

    # Decode

    def _make_room(self) -> None:
        """Evicts for the next token of each, and retracts where that is not enough.

        schedule_batch.py, retract_decode: at least one goes, the one with the fewest tokens out and
        among those the longest prompt, until the rest fits; the last one stays.
        """
        if self._can_decode(self.running):
            self.ratio.decay()
            return
        order = sorted(self.running, key=lambda r: (r.generated, -r.prompt), reverse=True)
        while len(order) > 1:
            self._retract(order.pop())
            self.make_free(RETRACT_STEPS * len(order))  # release_req
            if self._can_decode(order):
                break
        if order and not self._can_decode(order):
            self._abort(order.pop())
        self.running = [request for request in self.running if request in self.held]
        self.ratio.retracted(self.running)
        self.full = False

    def _can_decode(self, requests: Sequence[Request]) -> bool:
        page = self.page
        need = sum(page for request in requests if not request.computed % page)
        self.make_free(need)
        return self.free >= need

    def _allocate(self, requests: Sequence[Request]) -> int:
        """Each one's next token, evicted for as if all wanted a page (alloc_for_decode).

        Returns what was free for them.
        """
        self.make_free(self.page * len(requests))
        free = self.free
        for request in requests:
            self.grow(request, request.known)
        return free

    def _retract(self, request: Request) -> None:
        """Its cache is given up; it waits again with the tokens that it generated."""
        self.release(request, keep=False)
        request.preemptions += 1
        self.counts.preemptions += 1
        self.waiting.append(request)

    def _abort(self, request: Request) -> None:
        """Even alone it has no room for its next token: it ends with an error."""
        self.release(request, keep=False)
        self.gave_up.append(request)

    def _end_decode(self) -> list[Request]:
        for request in self.running:
            request.computed += 1
            self._token(request)
        finished = self._part(self.running)
        self.leaving = len(finished)
        return finished

    def _token(self, request: Request) -> None:
        """A token is out; whose answer is whole leaves the cache at once, its tokens stay."""
        self.emit(request)
        if request.done:
            self.release(request, keep=True)

    def _part(self, ran: list[Request]) -> list[Request]:
        """Those of a batch whose answers are whole; the others run on."""
        self.running = [request for request in ran if not request.done]
        return [request for request in ran if request.done]


def _ended(why: str) -> BadQuestion:
    """The RuntimeError of mem_cache/common.py, from which the scheduler does not come back."""
    return BadQuestion(f"SGLang ends here: {why}", "Raise --schedule-conservativeness.")
