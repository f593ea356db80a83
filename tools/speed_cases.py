"""Each measured row as kvplan sees it: the plan that its engine makes, and the work of a step."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kvplan.core.device import Device
from kvplan.core.errors import KvplanError
from kvplan.core.model import Model
from kvplan.engines.base import Asked, EnginePlan, Node
from kvplan.engines.registry import engine_of
from kvplan.planning.speed import Estimate, estimate
from kvplan.planning.speed.bound import work_of
from kvplan.planning.speed.ideal import Ideal
from kvplan.planning.speed.serving import static_batch
from kvplan.readers.devices import find_device
from kvplan.readers.open_model import open_model
from tools.speed_bench import benched, requests_of, sizes_of
from tools.speed_recipes import planned_as_run
from tools.speed_rows import Row, in_blocks

# The flags of a layout in each engine's spelling: tensor, pipeline, experts dealt, attention DP.
TENSOR: Final = {
    "vllm": "--tensor-parallel-size",
    "sglang": "--tp-size",
    "tensorrt-llm": "--tp-size",
}
STAGES: Final = {
    "vllm": "--pipeline-parallel-size", "sglang": "--pp-size", "tensorrt-llm": "--pp-size",
}  # fmt: skip
# As in the config of Qwen/Qwen3-32B-FP8, for releases that the catalogue lacks.
BLOCKS: Final = {"quant_method": "fp8", "weight_block_size": [128, 128]}
MOST_RUNNING: Final = 4096  # sequences of a rank where no flag says fewer
FILE_BITS: Final = {"q4_k_m": 4.85}  # bits an element of the usual mix


class Case(NamedTuple):
    """A row with its work: ``capacity`` sequences of one replica that its pool holds at once."""

    row: Row
    plan: EnginePlan
    ideal: Ideal
    replicas: int
    capacity: int
    mixed: bool

    @property
    def ranks(self) -> int:
        """Ranks with sequences of their own, of all replicas."""
        return self.replicas * int(self.ideal.group)


@lru_cache(maxsize=256)
def _model(name: str, blocks: bool) -> Model:
    """A catalogue's model, or as its publisher's own release in FP8 stores it."""
    stored = {"quantization_config": BLOCKS} if blocks else None
    return open_model(name, overrides=stored, offline=True)


@lru_cache(maxsize=256)
def _device(name: str) -> Device:
    return find_device(name)[0]


def _file_bytes(row: Row, model: Model) -> int | None:
    """What a llama.cpp file of a mix weighs; None where the checkpoint says it."""
    if row.engine != "llama.cpp" or row.quantization not in FILE_BITS or model.weights is None:
        return None
    return round(model.weights.parameters * FILE_BITS[row.quantization] / 8)


def case_of(row: Row) -> Case | str:
    """The case of a row, or why kvplan cannot plan it."""
    flags = dict(_flags(row))
    try:
        engine, model = engine_of(row.engine), _model(row.model, in_blocks(row))
        device = _device(row.device)
        asked = Asked(
            context=max(2, round(row.prompt + row.output)),
            version=row.version,
            flags=engine.flags.parse(flags),
            weights_bytes=_file_bytes(row, model),
        )
        node = Node(device=device, gpus=row.gpus, memory_bytes=device.memory_bytes or 0)
        plan = engine.plan(model, node, asked)
        plan = benched(engine, plan, row) if row.kind == "queued" else planned_as_run(row, plan)
    except KvplanError as wrong:
        return f"kvplan refuses it: {wrong.message[:60]}"
    work = work_of(plan)
    if work is None:
        return "bandwidth or weights are not known"
    held = plan.capacity(plan.asked.context).sequences // (work.replicas * int(work.ideal.group))
    return Case(row, plan, work.ideal, work.replicas, max(1, held), work.ideal.mixed > 0)


def answered(case: Case) -> float:
    """What kvplan answers to a row, in the metric that was measured.

    A plan that does not start is asked as if all its clients ran.
    """
    found = estimate(case.plan)
    assert found is not None
    return answer_by(found, case)


def answer_by(found: Estimate, case: Case) -> float:
    """What an estimate of its plan answers to a row."""
    row = case.row
    prompt, output, clients = round(row.prompt), round(row.output), row.concurrency
    ranks = found.ranks
    if row.kind == "prefill":
        return found.prefill_s(prompt)
    if row.kind == "queued":
        held = case.capacity if case.plan.starts else MOST_RUNNING
        capacity = min(held, MOST_RUNNING) * ranks
        asked = {"prompt": prompt, "output": output, "capacity": capacity}
        sizes = sizes_of(case.plan)
        return found.full_queue(**asked, requests=requests_of(row), sizes=sizes).tokens_per_s
    if row.kind == "static":
        return static_batch(
            found.in_process, prompt=prompt, output=output, batch=clients
        ).tokens_per_s
    capacity = case.capacity * ranks if case.plan.starts else clients
    served = found.closed_loop(
        prompt=prompt,
        output=output,
        clients=clients,
        capacity=min(capacity, MOST_RUNNING * ranks),
        drawn=row.drawn,
    )
    if row.metric == "tpot_s":
        return served.tpot_s
    return served.ttft_s + served.queue_s if row.metric == "ttft_s" else served.tokens_per_s


def cases(rows: list[Row]) -> tuple[list[Case], Counter[str]]:
    """The cases of rows, and how many are left out for which reason."""
    found, left = [], Counter[str]()
    for row in rows:
        case = case_of(row)
        if isinstance(case, str):
            left[case] += 1
        else:
            found.append(case)
    return found, left


def _flags(row: Row) -> dict[str, Any]:
    flags: dict[str, Any] = {}
    engine = row.engine
    if engine in TENSOR:
        flags[TENSOR[engine]] = row.tp
        if row.pp > 1:
            flags[STAGES[engine]] = row.pp
    if row.attention_dp:
        ranks = row.gpus // row.pp
        if engine == "vllm":
            flags |= {"--tensor-parallel-size": 1, "--data-parallel-size": ranks}
        elif engine == "sglang":
            flags |= {"--enable-dp-attention": True, "--dp-size": ranks, "--tp-size": ranks}
        else:
            flags |= {"--enable-attention-dp": True, "--tp-size": ranks}
    if row.experts_dealt:
        if engine == "vllm":
            flags["--enable-expert-parallel"] = True
        else:
            flags["--ep-size"] = row.gpus // row.pp
    if row.quantization and engine != "llama.cpp":
        flags["--quantization"] = row.quantization
    if row.kv_dtype != "auto" and engine != "llama.cpp":
        flags["--kv-cache-dtype"] = row.kv_dtype
    if row.kind == "static" and engine == "tensorrt-llm":
        flags["--max-batch-size"] = row.concurrency
    return flags
