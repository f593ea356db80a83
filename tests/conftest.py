"""A clean environment for every test: nothing from the machine's own settings or caches."""

from __future__ import annotations

from pathlib import Path

import pytest

SETTINGS = ("HF_TOKEN", "HF_ENDPOINT", "HF_HOME", "HF_HUB_OFFLINE", "OLLAMA_MODELS")


@pytest.fixture(scope="session")
def no_settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kvplan.toml that says nothing, in place of one that whoever runs the tests may have."""
    path = tmp_path_factory.mktemp("settings") / "kvplan.toml"
    path.touch()
    return path


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_settings: Path) -> None:
    for name in (*SETTINGS, "KVPLAN_DEBUG", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KVPLAN_OFFLINE", "1")
    monkeypatch.setenv("KVPLAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("KVPLAN_CONFIG", str(no_settings))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "160")
