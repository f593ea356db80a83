"""What figures tell beside what is stated: ranks, a pasted command, a plan of another start."""

from __future__ import annotations

import pytest

import kvplan
from kvplan.planning.explain import ExplainAnswer

POOL = "Available KV cache memory: 8.11 GiB\nGPU KV cache size: 178,880 tokens\n"
COMMAND = (
    "CUDA_VISIBLE_DEVICES=0,1,2,3 \\\nvllm serve /path/to/Qwen3-235B-A22B-FP8 \\\n"
    "  --tensor-parallel-size 4 \\\n"
    """  --kv-transfer-config '{"kv_connector":"LMCacheConnectorV1","kv_role":"kv_both"}'\n"""
)
SGLANG = "KV Cache is allocated. #tokens: 367404, K size: 8.23 GB, V size: 8.23 GB\n"
BIG = "Qwen/Qwen3-235B-A22B-FP8"


def explained(log: str, model: str | None = None, gpu: str = "h100-sxm-80gb") -> ExplainAnswer:
    return kvplan.explain(log, model=model, gpu=gpu, offline=True)


def ranks_of(answer: ExplainAnswer) -> int:
    """The cards of the plan."""
    assert answer.predicted is not None
    return answer.predicted.question.node.gpus


RANKS: list[tuple[str, str | None, int]] = [
    (POOL + COMMAND, None, 4),  # the model and the ranks of the command
    (SGLANG, BIG, 4),  # of four ranks each holds a KV head: 48,128 B a token
    ("non-default args: {'tensor_parallel_size': 2}\n" + POOL, BIG, 2),  # what is logged holds
    (SGLANG.replace("8.23", "32.92"), BIG, 1),
]


@pytest.mark.parametrize(("log", "model", "ranks"), RANKS)
def test_ranks(log: str, model: str | None, ranks: int) -> None:
    """The ranks are the log's, else the command's, else those that its bytes a token tell."""
    assert ranks == ranks_of(explained(log, model))


def test_ranks_that_figures_tell_are_said() -> None:
    """A figure with its arithmetic, and a warning that no line states it."""
    answer = explained(SGLANG, BIG)

    assert [4] == [row.value for row in answer.inferred if row.name == "tp_size"]
    assert any("Planned with --tp-size 4" in warning for warning in answer.warnings)


COMMANDS: list[tuple[str, dict[str, str]]] = [
    ("$ vllm serve a/b -tp 2 --max-model-len=4096 --enable-prefix-caching",
     {"--model": "a/b", "--tensor-parallel-size": "2", "--max-model-len": "4096",
      "--enable-prefix-caching": "True"}),
    ("A=1 python3 -m vllm.entrypoints.openai.api_server --model a/b --seed -1",
     {"--model": "a/b", "--seed": "-1"}),
    ("When I run vllm serve with --tensor-parallel-size 4 it fails", {}),
    ("vllm serve 'a", {}),
]  # fmt: skip


@pytest.mark.parametrize(("line", "flags"), COMMANDS)
def test_a_pasted_command(line: str, flags: dict[str, str]) -> None:
    """Its flags are the start's, where a line begins with it; no sentence is a command."""
    assert flags == explained(f"{line}\n\n{POOL}").start.flags


def test_printed_arguments_go_before_a_command() -> None:
    """A command that stands below the log's own arguments is of another start."""
    log = f"non-default args: {{'model': 'a/b', 'max_model_len': 8192}}\n{POOL}{COMMAND}"

    assert {"--model": "a/b", "--max-model-len": "8192"} == explained(log).start.flags


SHORT = (
    "ValueError: To serve at least one request with the models's max seq len ({0}), ({1} GiB KV "
    "cache is needed, which is larger than the available KV cache memory ({2} GiB). {3}Try\n"
)
LONGEST = "Based on the available memory, the estimated maximum model length is 34736. "
CODER = "Qwen/Qwen3-Coder-30B-A3B-Instruct-FP8"


def test_a_plan_of_another_start() -> None:
    """Where the plan's bytes a token are not the log's, no change is computed with them."""
    log = SHORT.format(1048576, "24.00", "9.97", "")
    answer = explained(log, "meta-llama/Llama-4-Scout-17B-16E-Instruct")

    assert ["length_exceeds_pool", "plan_contradicts_log"] == [f.code for f in answer.findings]
    assert "24,576 B a token on a card" in answer.findings[1].message
    assert () == answer.suggestions


# vllm-project/vllm issue 34076, whose build is one on the way to 0.15.2.
STAGES = "vLLM API server version 0.15.1\nnon-default args: {'pipeline_parallel_size': 2}\n"


def test_a_pipeline() -> None:
    """A release that counts the layers of all stages: its estimate is a lever, as are others."""
    log = STAGES + SHORT.format(262144, "24.0", "3.18", LONGEST)
    answer = explained(log, CODER, "rtx-5090")
    told = {f"{row.flag} {row.value}" for row in answer.suggestions}

    assert "24.00 GiB of cache, as the engine counts a pipeline" in answer.findings[0].message
    assert {"--max-model-len 34736", "--kv-cache-dtype fp8 --max-model-len 69472"} <= told
    unversioned = explained(log.partition("\n")[2], CODER, "rtx-5090")
    assert "plan_contradicts_log" in [finding.code for finding in unversioned.findings]


def test_whole_prompts_of_v0() -> None:
    """V0 takes a batch below the longest prompt only where prompts are cut."""
    log = (
        "# GPU blocks: 1478, # CPU blocks: 2048\n"
        "The model's max seq len (29000) is larger than the maximum number of tokens that can be "
        "stored in KV cache (23648).\n"
    )
    answer = explained(log, "llama-3.1-8b", "rtx-3090")
    told = [f"{row.flag} {row.value}" for row in answer.suggestions]

    assert "--max-model-len 23648" == told[0]
    assert "--enable-chunked-prefill --max-num-batched-tokens 2048" in told
