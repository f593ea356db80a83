"""Write docs/accuracy.md from the tests' own cases: what is right, by how much, and every miss.

python -m tools.accuracy            rewrite the page and the README's comparison
python -m tools.accuracy --check    say whether they are current, and exit 1 if not
"""

from __future__ import annotations

import importlib
import re
import statistics
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests import oracle_cases as oracle
from tests.readers import test_oracle as judged
from tools import accuracy_latency, accuracy_speed
from tools.accuracy_peers import budget_section, peers_section, readme_table
from tools.markdown import markdown_table

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "accuracy.md"


def oracle_section() -> str:
    """Bytes and parameters beside transformers' own."""
    cases = [*oracle.default_cases(), *oracle.real_cases()]
    answered = [case for case in cases if case.answered]
    defaults = sum(not case.name.endswith(".json") for case in answered)
    counted = [case for case in cases if case.parameters is not None]
    sizes = sum(1 for case in answered for _ in case.sizes())
    refused = "\n".join(f"- `{name}`: {why}" for name, why in judged.REFUSED.items()) or "None."
    other = "\n".join(f"- `{name}`: {why}" for name, why in judged.OTHER_PARAMETERS.items())
    unanswered = [case for case in cases if not case.answered]
    return f"""## Raw bytes and parameters: transformers is the judge

Each model is built by transformers 5.24.0 without weights, given a prompt, and every tensor of its cache is summed
(`tests/reference/kv_oracle`). kvplan reads the same config.

{
        markdown_table(
            ("what", "cases", "right"),
            [
                ("types, class defaults", str(defaults), str(defaults - len(judged.REFUSED))),
                ("published models", str(len(answered) - defaults), str(len(answered) - defaults)),
                ("sizes (batch × length, prefill and later steps)", f"{sizes:,}", f"{sizes:,}"),
                (
                    "parameter counts",
                    str(len(counted)),
                    str(len(counted) - len(judged.OTHER_PARAMETERS)),
                ),
            ],
        )
    }

Answered records that kvplan refuses by name:

{refused}

Parameter counts that differ:

{other or "None."}

transformers itself gives no cache for {
        len(unanswered)
    } records (it fails on their class defaults, or has no such type); kvplan
answers those by rule where the rule is known: {", ".join(f"`{case.name}`" for case in unanswered)}.

`make test-oracle` builds a sample again, live, and configs that nobody published: class defaults with some keys changed.
"""


class Reports(NamedTuple):
    """Start-up reports of one engine, and the tests that hold them."""

    engine: str
    module: str


REPORTS = (
    Reports("vLLM", "tests.engines.vllm.test_reports"),
    Reports("SGLang", "tests.engines.sglang.test_reports"),
    Reports("llama.cpp, ik_llama.cpp", "tests.engines.llamacpp.test_reports"),
    Reports("TensorRT-LLM", "tests.engines.tensorrt_llm.test_reports"),
)


def report_lines() -> Iterator[tuple[str, str, str, str]]:
    """Rows with a stated pool, right and all, by engine and verdict."""
    for engine, module in REPORTS:
        tests = importlib.import_module(module)
        missed = getattr(tests, "MISSED", {})
        if hasattr(tests, "REPRODUCED"):
            for verdict, cases in (("nothing", tests.REPRODUCED), ("as flags", tests.EXPLAINED)):
                right = sum(row.id not in missed for row in cases)
                yield engine, verdict, str(len(cases)), str(right)
        else:
            yield engine, "some, as flags", str(len(tests.ROWS)), str(len(tests.ROWS))


def left_out() -> Iterator[str]:
    """Rows that no rule is held against, and misses, each with its reason."""
    for engine, module in REPORTS:
        tests = importlib.import_module(module)
        for title in ("LEFT_OUT", "MISSED"):
            for name, why in getattr(tests, title, {}).items():
                yield f"- {engine}, `{name}`: {why}"


def pools_section() -> str:
    """What the engines printed, from the pool that they state."""
    return f"""## Blocks, tokens and concurrency: the engines' own logs are the judge

From the pool that a start-up report states, every figure that the report prints of it, within its printed digits.

{markdown_table(("engine", "assumed", "reports", "all figures right"), report_lines(), right=2)}

vLLM's own planning, run without a GPU for 27 models: 201 of 201 rows equal, and 20 of 20 mixes of layer kinds.

Left out, with the reason:

{chr(10).join(left_out())}
"""


def prediction_section() -> str:
    """The pool of vLLM from the command alone."""
    from tests.engines.vllm import accuracy, test_memory

    campaign, others = list(accuracy.pools("vllm_campaign")), list(accuracy.pools("vllm"))
    kept = [row for row in campaign if row.model in accuracy.kept_aside()]
    lines = [
        (name, str(len(found)), *errors(found))
        for name, found in (
            ("campaign, kept aside from fitting", kept),
            ("campaign, all", campaign),
            ("other reports with a known card and version", others),
        )
    ]
    missed = "\n".join(f"- `{name}`: {why}" for name, why in test_memory.MISSED_WEIGHTS.items())
    unsaid = "\n".join(f"- `{name}`: {why}" for name, why in accuracy.LEFT_OUT.items())
    return f"""## vLLM's pool, predicted from the command alone

Weights, activations, sampler, kernels and CUDA graphs are predicted; the error is that of the pool they leave.

{markdown_table(("reports", "rows", "mean", "median", "90th percentile", "worst", "in the band"), lines)}

The rows kept aside are of {len({row.model for row in kept})} models only: the campaign has few.

{accuracy.table([*campaign, *others], "family")}

{accuracy.table([*campaign, *others], "version")}

Rows whose report leaves open what the pool depends on:

{unsaid}

Checkpoints of an unknown recipe ({len(accuracy.UNKNOWN_RECIPES)}): what they weigh cannot be told from a name; pass `--weights-bytes`.

Weights that are not within 0.5% of a report (2% quantised):

{missed}
"""


def questions_section() -> str:
    """Settled figures of collected questions, and those that are not answered."""
    from tests.questions import test_coverage
    from tests.questions.rows import rows

    modules = test_coverage.modules()
    answered = [key for module in modules for key in module.ANSWERS]
    missing = [item for module in modules for item in module.EXCEPTIONS.items()]
    asked = {key.partition(".")[0] for key in (*answered, *(key for key, _ in missing))}
    left = "\n".join(f"- `{key}`: {why}" for key, why in missing)
    return f"""## Questions of people who do this job

{len(rows())} collected questions with settled figures: {len(asked)} are held here figure by figure, {len(answered)} figures equal in their printed digits; the other
{len(rows()) - len(asked)} are on llama.cpp and Ollama (`tests/engines/llamacpp/test_questions.py`). Not answered, with the reason:

{left}
"""


def errors(found: list[Any]) -> tuple[str, ...]:
    """Mean, median, 90th percentile, worst, and the share inside the shown band."""
    sizes = sorted(abs(row.error) for row in found)
    within = sum(abs(row.predicted - row.reported) <= row.band for row in found)
    ninety = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
    return (
        f"{statistics.mean(sizes):.2%}",
        f"{statistics.median(sizes):.2%}",
        f"{ninety:.2%}",
        f"{sizes[-1]:.2%}",
        f"{within} of {len(found)}",
    )


def speed_section() -> str:
    """How fast, on models that no constant was fitted to."""
    return f"{accuracy_speed.section()}\n"


def latency_section() -> str:
    """What clients see of it, simulated."""
    return accuracy_latency.section()


def page() -> str:
    """The whole page."""
    sections = (
        oracle_section,
        pools_section,
        prediction_section,
        questions_section,
        budget_section,
        speed_section,
        latency_section,
        peers_section,
    )
    text = "\n".join(section() for section in sections)
    return f"""# Accuracy

Every figure here is made from the tests' own cases by one script (`python -m tools.accuracy`), the misses too.

{text}"""


def main(check: bool) -> int:
    """Rewrite, or say what is stale."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    fresh = re.sub(
        r"<!-- peers -->.*?<!-- /peers -->",
        lambda _: f"<!-- peers -->\n{readme_table()}\n<!-- /peers -->",
        text,
        flags=re.S,
    )
    stale = [path for path, new in ((PAGE, page()), (readme, fresh)) if _differs(path, new, check)]
    for path in stale:
        print(f"changed: {path.name}")
    return 1 if check and stale else 0


def _differs(path: Path, new: str, check: bool) -> bool:
    old = path.read_text(encoding="utf-8") if path.exists() else ""
    if old != new and not check:
        path.write_text(new, encoding="utf-8")
    return old != new


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
