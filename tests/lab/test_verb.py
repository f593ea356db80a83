"""``kvplan.lab`` is a package and a verb, in whatever order it is imported."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import kvplan

ORDERS = {
    "the verb first": "import kvplan; kvplan.lab; import kvplan.lab.kinds",
    "a module first": "import kvplan.lab.kinds; import kvplan",
    "its own module": "import kvplan.lab.experiment; import kvplan; import kvplan.lab.kinds",
    "by name": "from kvplan import lab; import kvplan.lab.kinds as kinds; import kvplan",
}
CHECK = "; assert callable(kvplan.lab); assert kvplan.lab.kinds.KINDS; assert kvplan.lab.answer"


@pytest.mark.parametrize("name", ORDERS)
def test_modules_are_found_in_the_verb(name: str) -> None:
    """What is called is what modules are found in, and stays so."""
    done = subprocess.run(
        [sys.executable, "-c", ORDERS[name] + "; import kvplan.lab.answer" + CHECK],
        capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert "" == done.stderr


def test_its_signature_is_the_verbs() -> None:
    """Tools that ask for keywords see those of the verb."""
    keywords = inspect.signature(kvplan.lab).parameters

    assert {"model", "caches", "prompt", "output", "offline"} <= set(keywords)
