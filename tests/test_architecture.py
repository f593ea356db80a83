"""The structure holds: who may import whom, what the core may import, what the package exports."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import kvplan

SOURCE = Path(kvplan.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# A package may import those at or below its own level, and itself.
LEVELS = {
    "core": 0, "readers": 1, "engines": 1, "logs": 1, "planning": 2, "simulation": 2,
    "measuring": 2, "lab": 2, "charts": 3, "web": 4, "cli": 4,
}  # fmt: skip
# What the root may import: its public functions.
MAX_LINES = 400


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: relative import"
            found.add(node.module or "")
    return found


def package_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_dependencies_point_downwards(path: Path) -> None:
    """No package imports one above it; engines know no reader, and logs no engine."""
    own = package_of(path)
    if own not in LEVELS:
        return
    for name in imports(path):
        parts = name.split(".")
        if parts[0] != "kvplan" or len(parts) == 1 or parts[1] == "_version":
            continue
        assert LEVELS[parts[1]] <= LEVELS[own], f"{own} imports {name}"
        assert not (own == "engines" and parts[1] in ("readers", "logs")), f"engines import {name}"
        assert not (own == "logs" and parts[1] == "engines"), f"logs import {name}"


@pytest.mark.parametrize(
    "path", [p for p in FILES if package_of(p) == "core"], ids=lambda p: p.name
)
def test_the_core_is_pure(path: Path) -> None:
    """The core imports the standard library and itself, and nothing that does I/O."""
    doing_io = {"os", "io", "pathlib", "socket", "subprocess", "time", "random", "sys", "json"}
    for name in imports(path):
        top = name.split(".")[0]
        assert name.startswith("kvplan.core") or top in sys.stdlib_module_names, name
        assert top not in doing_io, name


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_a_file_holds_one_concept(path: Path) -> None:
    """A file that passes 400 lines has a second concept in it."""
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_LINES


def test_exported_names() -> None:
    """What ``__all__`` names is there, sorted, and is all that ``dir`` shows."""
    assert sorted(kvplan.__all__) == kvplan.__all__ == dir(kvplan)
    assert not [name for name in kvplan.__all__ if getattr(kvplan, name, None) is None]


def test_a_name_that_is_not_there() -> None:
    """A wrong name is an attribute error, as of any module."""
    with pytest.raises(AttributeError, match="no attribute 'sise'"):
        kvplan.sise  # noqa: B018


def test_the_command_starts_light() -> None:
    """Sizing imports no numpy, torch or plotting."""
    import subprocess

    script = (
        "import sys, kvplan.cli as cli\n"
        "code = cli.run(['size', 'llama-3.1-8b', '--json'])\n"
        "heavy = {'numpy', 'torch', 'altair', 'transformers', 'httpx', 'pandas'}\n"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )

    assert (0, "") == (done.returncode, done.stderr)
