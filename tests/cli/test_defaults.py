"""What the command takes of a kvplan.toml: which values, when, and that its answers say so."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import kvplan
from kvplan.cli import run
from kvplan.cli.defaults import given_in

FILE = """
engine = "sglang"
gpu = "l4"
currency = "EUR"
exchange-rate = 0.5

[cards.l40s]
price = 1.5

[cards.ours]
like = "h100-sxm-80gb"
memory = "95830MiB"
price = 2
"""
FIT = ["fit", "qwen3-8b", "--context", "8k"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("KVPLAN_CONFIG")
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "kvplan.toml").write_text(FILE)
    return folder


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    status = run([*words, "--json"])
    out, err = capsys.readouterr()
    assert status in (0, 1), err
    found: dict[str, Any] = json.loads(out)
    return found


# The flags, and what holds then: engine, card, currency, the keys taken of the file.
HELD = [
    ([], "sglang", "l4", "EUR", ["engine", "gpu", "currency", "exchange_rate"]),
    (["--engine", "vllm"], "vllm", "l4", "EUR", ["gpu", "currency", "exchange_rate"]),
    (["--engine=vllm", "--gpu=l40s"], "vllm", "l40s", "EUR", ["currency", "exchange_rate"]),
    (["--gpu", "ours"], "sglang", "ours", "EUR", ["engine", "currency", "exchange_rate"]),
    (["--gpu-memory", "24GiB", "--price", "1"], "sglang", "given", "EUR",
     ["engine", "currency", "exchange_rate"]),
    (["--currency", "USD"], "sglang", "l4", "USD", ["engine", "gpu"]),
    (["--currency", "GBP", "--exchange-rate", "0.75"], "sglang", "l4", "GBP", ["engine", "gpu"]),
    (["--exchange-rate", "1"], "sglang", "l4", "EUR", ["engine", "gpu", "currency"]),
    (["--mem-fraction-static", "0.8"], "sglang", "l4", "EUR",
     ["engine", "gpu", "currency", "exchange_rate"]),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "engine", "card", "currency", "taken"), HELD)
def test_a_flag_wins(
    flags: list[str],
    engine: str,
    card: str,
    currency: str,
    taken: list[str],
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What is not said is the file's; the answer has each value of it with its key."""
    found = asked(capsys, *FIT, *flags)
    values = {"engine": "sglang", "gpu": "l4", "currency": "EUR", "exchange_rate": 0.5}

    assert (engine, card) == (found["engine"]["name"], found["device"]["name"])
    assert currency == found["cost"]["currency"]
    assert {
        name: {"value": values[name], "source": f"kvplan.toml: {name.replace('_', '-')}"}
        for name in taken
    } == found["defaults"]


def test_a_command_line_has_its_engine(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside --from the file's engine is not meant; its card is."""
    found = asked(capsys, "fit", "--from", "vllm serve qwen3-8b", "--context", "8k")

    assert ("vllm", "l4") == (found["engine"]["name"], found["device"]["name"])
    assert {"gpu", "currency", "exchange_rate"} == set(found["defaults"])


# The flags, the price of an hour, its currency, and where it is from.
PRICED = [
    (["--gpu", "l40s"], 1.5, "EUR", "kvplan.toml: cards.l40s.price = 1.5 EUR"),
    (["--gpu", "ours"], 2.0, "EUR", "kvplan.toml: cards.ours.price = 2 EUR"),
    (["--gpu", "ours", "--price", "3"], 3.0, "EUR", "--price"),
    (["--gpu", "ours", "--capital", "0"], 0.0, "EUR", "0 over 4 years"),
    (["--gpu", "ours", "--currency", "USD"], 4.0, "USD", "kvplan.toml: cards.ours.price = 2 EUR"),
    (["--gpu", "ours", "--currency", "GBP", "--exchange-rate", "0.75"], 3.0, "GBP",
     "kvplan.toml: cards.ours.price = 2 EUR"),
    (["--gpu", "l40s", "--gpus", "2"], 1.5, "EUR", "kvplan.toml: cards.l40s.price = 1.5 EUR"),
]  # fmt: skip


@pytest.mark.parametrize(("flags", "hour", "currency", "source"), PRICED)
def test_the_price_of_a_card(
    flags: list[str],
    hour: float,
    currency: str,
    source: str,
    here: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A flag's, else the file's, told in the currency that is asked for."""
    cost = asked(capsys, *FIT, *flags)["cost"]

    assert (hour, currency, source) == (cost["per_gpu_hour"], cost["currency"], cost["source"])


@pytest.mark.parametrize(
    "flags",
    [
        ["--provider", "hyperstack"],
        ["--price-kind", "spot"],
        ["--price-kind", "reserved", "--discount", "40%"],
    ],
    ids=str,
)
def test_a_flag_may_ask_for_the_list(
    flags: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A provider, a kind or a discount is of list prices, which the file's is not."""
    cost = asked(capsys, *FIT, "--gpu", "l40s", *flags)["cost"]

    assert cost is None or "kvplan.toml" not in cost["source"]


def test_a_price_that_cannot_be_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a rate there is no price in another currency, and a sentence, not the list's."""
    (here / "kvplan.toml").write_text("currency = 'EUR'\n[cards.l4]\nprice = 1\n")
    found = asked(capsys, *FIT, "--gpu", "l4", "--currency", "USD")

    assert None is found["cost"]
    said = (
        "The price of l4 is in EUR (kvplan.toml: cards.l4.price) and cannot be told in USD: give "
        "exchange-rate there, or --price."
    )
    assert [said] == [text for text in found["warnings"] if "price" in text]


def test_list_prices_in_a_currency_without_a_rate(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """That there is no price is said, as its reason stands in a file."""
    (here / "kvplan.toml").write_text("currency = 'EUR'")
    found = asked(capsys, *FIT, "--gpu", "l4")

    assert None is found["cost"]
    assert "List prices are in dollars: pass --exchange-rate for EUR." in found["warnings"]


def test_the_figures_of_a_card(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One's own memory is planned with, by the rules of the card that it is like."""
    found = asked(capsys, *FIT, "--gpu", "ours", "--engine", "vllm")
    like = asked(capsys, *FIT, "--gpu", "h100-sxm-80gb", "--engine", "vllm")
    terms = [{t["name"]: t["bytes"] for t in one["ledger"]} for one in (found, like)]
    rules = ("weights", "activation_peak", "non_torch", "cuda_graphs", "context")

    assert 95830 << 20 == found["device"]["memory_bytes"]
    assert "kvplan.toml: cards.ours.memory" == found["launch"]["--gpu-memory"]["source"]
    assert "kvplan.toml: cards.ours" == found["launch"]["--gpu"]["source"]
    assert [terms[1][name] for name in rules] == [terms[0][name] for name in rules]
    assert terms[0]["kv_pool"] > terms[1]["kv_pool"]


def test_advise_has_ones_own_cards(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are compared with all others at their price; the card is not taken, as it is asked."""
    found = asked(capsys, "advise", "qwen3-8b", "--users", "4", "--context", "8k")
    options = {one["gpu"]: one for one in reversed(found["options"])}

    assert {"engine", "currency", "exchange_rate"} == set(found["defaults"])
    assert {"ours", "l40s", "l4", "h100-sxm-80gb"} <= set(options)
    assert [2.0, 1.5] == [
        options[name]["cost_per_hour"] / options[name]["gpus"] for name in ("ours", "l40s")
    ]


def test_a_card_that_costs_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is the choice, and what costs something is not said to cost the same."""
    (here / "kvplan.toml").write_text("[cards.l40s]\nprice = 0\n")
    found = asked(
        capsys, "advise", "qwen3-8b", "--users", "4", "--context", "8k", "--gpu", "l40s,h200"
    )
    first = {one["gpu"]: one for one in reversed(found["options"])}

    assert ("l40s", 0) == (found["options"][0]["gpu"], found["options"][0]["cost_per_hour"])
    assert "meets the goals at a cost" == first["h200"]["why_not"]


def test_a_sweep_knows_them_in_its_processes(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What was run is found again while the card is what it was, whatever it costs."""
    words = [
        "simulate", "qwen3-8b", "--engine", "vllm", "--requests", "4", "--prompt", "64",
        "--output", "4", "--time", "constant:10ms", "--sweep", "gpu=ours", "--sweep", "rate=1,2",
        "--jobs", "2", "--results", "points",
    ]  # fmt: skip
    found = [asked(capsys, *words)]
    for old, new in (("price = 2", "price = 3"), ("95830MiB", "95831MiB")):
        path = here / "kvplan.toml"
        path.write_text(path.read_text().replace(old, new))
        found.append(asked(capsys, *words))

    assert [4, 4] == [p["answer"].get("finished") for p in found[0]["sweep"]["points"]]
    assert [0, 2, 0] == [one["sweep"]["resumed"] for one in found]
    assert "defaults" not in found[0]


VERBS = {
    "fit": FIT,
    "simulate": ["simulate", "qwen3-0.6b", "--rate", "9", "--requests", "3", "--output", "4"],
    "advise": ["advise", "qwen3-8b", "--users", "2", "--context", "4k", "--gpu", "ours"],
    "prefix": ["prefix", "requests.jsonl"],
}


@pytest.mark.parametrize("verb", VERBS)
def test_answers_with_defaults_are_as_their_schemas(
    verb: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The schema has the key, and one that is not as it says is told."""
    (here / "requests.jsonl").write_text('{"prompt": "One and two."}\n' * 2)
    found = asked(capsys, *VERBS[verb])
    text = files("kvplan").joinpath(f"data/schemas/{verb}.json").read_text("utf-8")
    schema = jsonschema.Draft202012Validator(json.loads(text))

    assert "sglang" == found["defaults"]["engine"]["value"]
    assert schema.is_valid(found)
    del found["defaults"]["engine"]["source"]
    assert not schema.is_valid(found)


def test_a_person_is_told(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line after the answer; the table says whose price it is."""
    assert 0 == run([*FIT, "--gpu", "ours"])
    out, err = capsys.readouterr()

    assert "an hour (kvplan.toml)" in out
    assert ["kvplan.toml: engine = sglang, currency = EUR, exchange-rate = 0.5"] == [
        line for line in err.splitlines() if "toml" in line
    ]


def test_a_file_has_it_too(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """-o writes the same JSON."""
    run([*FIT, "-o", "fit.json"])
    found = asked(capsys, *FIT) if capsys.readouterr() else {}

    assert found == json.loads((here / "fit.json").read_text())


def test_gpus_lists_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the keys that their figures are from, and what they cost."""
    (row,) = asked(capsys, "gpus", "ours")["gpus"]
    run(["gpus", "l40"])
    table = capsys.readouterr().out

    assert ("ours", "kvplan.toml: cards.ours.memory") == (row["name"], row["sources"]["memory"])
    assert {
        "per_hour": 2.0,
        "currency": "EUR",
        "usd_per_hour": 4.0,
        "source": "kvplan.toml: cards.ours.price",
    } == row["price"]
    assert ["your price", "–", "1.50 EUR"] == [
        re.split(r" {2,}", line.strip())[-1] for line in table.splitlines() if "   " in line.strip()
    ]


def test_explain_knows_them(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log is held against a card of one's own; the file's engine and card are not the log's."""
    (here / "start.log").write_text(
        "vLLM API server version 0.19.0\nnon-default args: {'model': 'Qwen/Qwen3-8B'}\n"
        "Available KV cache memory: 50.00 GiB\nGPU KV cache size: 364,080 tokens\n"
    )
    found = asked(capsys, "explain", "start.log", "--gpu", "ours")

    assert ("vllm", "ours") == (found["engine"]["name"], found["predicted"]["device"]["name"])
    assert "defaults" not in found


def test_a_log_may_name_one(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the name that its driver has for it."""
    path = here / "kvplan.toml"
    path.write_text(f"{path.read_text()}aliases = ['NVIDIA Q100']\n")
    (here / "start.log").write_text(
        "build: 6000 (abcdef0) with cc for x86_64-linux-gnu\n"
        "llama_model_load_from_file_impl: using device CUDA0 (NVIDIA Q100) (0000:01:00.0)"
        " - 95000 MiB free\n"
        "llama_kv_cache: size = 1024.00 MiB (  8192 cells,  32 layers,  1/1 seqs), "
        "K (f16):  512.00 MiB, V (f16):  512.00 MiB\n"
    )
    found = asked(capsys, "explain", "start.log", "--model", "llama-3.1-8b")

    assert "ours" == found["predicted"]["device"]["name"]


# What is asked in which file, and words of the sentence.
REFUSED = [
    ("engine = 'vlm'", FIT, ["kvplan.toml: engine: No engine is named 'vlm'", "vllm"]),
    ("gpu = 'h1000'", FIT, ["kvplan.toml: gpu: No device is named 'h1000'", "h100"]),
    ("gpus = 2", FIT, ["kvplan.toml: gpus", "Did you mean gpu?"]),
    ("[cards.ours]\nprice = 1", ["gpus"], ["cards.ours"]),
    ("engine = 'sglang'", [*FIT, "--gpu", "l4", "--block-size", "16"],
     ["--block-size", "kvplan.toml: engine = sglang"]),
    ("engine = 'tensorrt-llm'", ["prefix", "kvplan.toml"],
     ["tensorrt-llm", "kvplan.toml: engine = tensorrt-llm"]),
    ("not toml", ["ui"], ["kvplan.toml is not TOML"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "said"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_a_refusal_names_the_file(
    text: str, words: list[str], said: list[str], here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit status 2 and a sentence, as JSON too."""
    (here / "kvplan.toml").write_text(text)
    statuses = [run(words), run([*words, "--json"])] if words != ["ui"] else [run(words)] * 2
    err = capsys.readouterr().err

    assert [2, 2] == statuses
    assert [] == [word for word in said if word not in err]
    assert "Traceback" not in err


@pytest.mark.parametrize("words", [["size", "qwen3-8b"], ["models", "qwen3-8b"], ["engines"]])
def test_who_takes_nothing_reads_nothing(words: list[str], here: Path) -> None:
    """A file that is wrong does not stop what has no use for it; nor does it stop --help."""
    (here / "kvplan.toml").write_text("not toml")

    assert (0, 0) == (run(words), run(["fit", "--help"]))


def test_none_or_another_file(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--no-config reads none; --config-file another, wherever it stands; so does KVPLAN_CONFIG."""
    (here / "other.toml").write_text("engine = 'llama.cpp'\ngpu = 'rtx-4090'\n")
    none = [["--no-config", *FIT, "--gpu", "l4"], [*FIT, "--gpu", "l4", "--no-config"]]
    other = [["--config-file", "other.toml", *FIT], [*FIT, "--config-file=other.toml"]]
    found = [asked(capsys, *words) for words in (*none, *other)]
    monkeypatch.setenv("KVPLAN_CONFIG", "other.toml")
    found.append(asked(capsys, *FIT))

    assert ["vllm"] * 2 + ["llama.cpp"] * 3 == [one["engine"]["name"] for one in found]
    assert [False, False, True, True, True] == ["defaults" in one for one in found]
    assert "other.toml: gpu" == found[-1]["defaults"]["gpu"]["source"]


@pytest.mark.parametrize(
    ("words", "status"),
    [([*FIT, "--config-file"], 2), ([*FIT, "--config-file", "no.toml"], 3),
     (["size", "qwen3-8b", "--config-file", "no.toml"], 3)],
)  # fmt: skip
def test_a_file_that_is_not_there(
    words: list[str], status: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that is named has to be there, whoever is asked."""
    assert status == run(words)
    assert "no.toml" in (err := capsys.readouterr().err) or "--config-file needs a file" in err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["fit", "--gpu", "l4", "--gpu-memory=3"], {"gpu", "gpu_memory"}),
        (["simulate", "--sweep", "gpu=a,b", "--sweep=engine=c"], {"sweep", "gpu", "engine"}),
        (["fit", "--", "--gpu"], set()),
        (["fit", "-o", "x.csv", "-"], set()),
    ],
)
def test_what_a_command_line_says(words: list[str], found: set[str]) -> None:
    """The axes of a sweep are said, too."""
    assert found == given_in(words)


def test_functions_read_no_file(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program's answers do not change with the folder that it runs in."""
    monkeypatch.setenv("KVPLAN_CONFIG", str(here / "kvplan.toml"))
    found = kvplan.fit("qwen3-8b", gpu="l40s", context="8k").to_dict()

    assert "vllm" == found["engine"]["name"]
    assert "USD" == found["cost"]["currency"]
    assert "kvplan.toml" not in json.dumps(found)
    with pytest.raises(kvplan.KvplanError, match="ours"):
        kvplan.fit("qwen3-8b", gpu="ours")


def test_without_a_file_nothing_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """TOML is read where there is some."""
    monkeypatch.delenv("KVPLAN_CONFIG")
    script = (
        "import sys, kvplan.cli as cli\n"
        "code = cli.run(['fit', 'qwen3-0.6b', '--gpu', 'l4', '--json'])\n"
        "late = {'tomllib', 'kvplan.readers.toml_text', 'kvplan.readers.own_cards'}\n"
        "sys.exit(str(late & set(sys.modules)) if late & set(sys.modules) else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert (0, "") == (done.returncode, done.stderr)
