"""What was downloaded: asked for once, stale by its ETag, whole or absent, enough offline."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kvplan.core.errors import SourceUnreachable, UnknownName
from kvplan.core.model import Model
from kvplan.readers import hub_cache
from kvplan.readers.hub_cache import Entry, Key, clear_cache
from kvplan.readers.open_model import open_model
from tests.readers.hub_files import CONFIG, PARAMETERS, SHAPES, gguf, safetensors, shards
from tests.readers.hub_server import COMMIT, FakeHub

KEY = Key("https://hub", "org/name", "main", "config.json")


def entries(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache/hub").iterdir())


def num_bytes(model: Model) -> int:
    assert model.weights is not None
    return model.weights.num_bytes


@pytest.fixture
def sharded(hub: FakeHub) -> FakeHub:
    """A hub with a model of two shards, which was asked about."""
    hub.put("org/tiny", config__json=CONFIG, **shards())
    open_model("org/tiny")
    hub.asked.clear()
    return hub


def test_the_same_commit_costs_one_request(sharded: FakeHub) -> None:
    """The config tells the commit; what was seen in it is not asked for again."""
    found = open_model("org/tiny")

    assert 4 * PARAMETERS == num_bytes(found)
    assert ["config.json"] == sharded.paths()


def test_a_commit_is_never_asked_for_twice(hub: FakeHub) -> None:
    """What a commit holds cannot change."""
    hub.put("org/tiny", config__json=CONFIG, **shards())
    open_model(f"org/tiny@{COMMIT}")
    hub.asked.clear()
    open_model(f"org/tiny@{COMMIT}")

    assert [] == hub.asked


@pytest.mark.parametrize("has_cdn", [False, True])
def test_another_commit_with_the_same_files(sharded: FakeHub, has_cdn: bool) -> None:
    """ETags are compared; nothing is sent again, and the next time nothing is asked."""
    sharded.commit, sharded.has_cdn = "d" * 40, has_cdn
    open_model("org/tiny")
    first = len(sharded.asked)
    open_model("org/tiny")

    assert (4, 1) == (first, len(sharded.asked) - first)
    assert [] == sharded.paths("cdn")


def test_a_file_that_changed_is_fetched(sharded: FakeHub) -> None:
    """Another ETag: the new answer."""
    sharded.commit = "d" * 40
    sharded.put("org/tiny", config__json=CONFIG | {"num_hidden_layers": 2})

    assert 2 == len(open_model("org/tiny").blocks)


def test_a_hub_without_commits(hub: FakeHub) -> None:
    """A mirror that does not tell commits: ETags alone."""
    hub.put("org/tiny", config__json=CONFIG, model__safetensors=safetensors())
    hub.commit = ""
    open_model("org/tiny")
    hub.put("org/tiny", model__safetensors=safetensors(list(SHAPES)[:1]))

    assert 4 * 32 * 8 == num_bytes(open_model("org/tiny"))


@pytest.mark.parametrize("damage", [b"", b"\n", b"{}\n", b"\xff", b"[1]\nx", b"9" * 5000])
def test_a_damaged_entry_is_fetched_again(sharded: FakeHub, tmp_path: Path, damage: bytes) -> None:
    """Whatever became of an entry, it is as good as absent."""
    for path in entries(tmp_path):
        path.write_bytes(damage)

    assert 4 * PARAMETERS == num_bytes(open_model("org/tiny"))
    assert 4 == len(set(sharded.paths()) - {"model.safetensors"})
    assert damage not in [path.read_bytes() for path in entries(tmp_path)]


def test_a_changed_byte_is_noticed(sharded: FakeHub, tmp_path: Path) -> None:
    """The digest covers the bytes."""
    for path in entries(tmp_path):
        path.write_bytes(path.read_bytes()[:-1] + b"?")

    assert 4 * PARAMETERS == num_bytes(open_model("org/tiny"))


@pytest.mark.parametrize("how", ["flag", "HF_HUB_OFFLINE", "KVPLAN_OFFLINE"])
def test_offline_answers_from_the_cache(
    sharded: FakeHub, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The same answer, and no request."""
    if how != "flag":
        monkeypatch.setenv(how, "1")
    found = open_model("org/tiny", offline=how == "flag")

    assert 4 * PARAMETERS == num_bytes(found)
    assert [] == sharded.asked


def test_offline_knows_a_gguf(hub: FakeHub) -> None:
    """The list of files and the header, however long."""
    hub.put("org/tiny-GGUF", **{"t-Q8_0.gguf": gguf(vocabulary=60_000)})
    open_model("org/tiny-GGUF:Q8_0")
    hub.asked.clear()

    assert 60_000 == open_model("org/tiny-GGUF:Q8_0", offline=True).vocab_size
    assert [] == hub.asked


def test_offline_without_the_shards(hub: FakeHub) -> None:
    """What is not in the cache is said to be the config's."""
    hub.put("org/tiny", config__json=CONFIG, model__safetensors=safetensors())
    hub.statuses["org/tiny/model.safetensors"] = (403, "")
    open_model("org/tiny")
    found = open_model("org/tiny", offline=True)

    assert "Weights are the config's" in found.warnings[-1]


@pytest.mark.parametrize("name", ["org/tiny", "org/tiny:Q8_0", "org/tiny/x.gguf", "hf:org/tiny"])
def test_offline_and_never_asked(hub: FakeHub, name: str) -> None:
    """It is said why there is no answer."""
    with pytest.raises(UnknownName, match="--offline forbids asking the hub"):
        open_model(name, offline=True)
    assert [] == hub.asked


@pytest.mark.parametrize("variable", ["", "HF_HOME", "HF_HUB_CACHE"])
def test_offline_reads_what_huggingface_hub_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Its snapshots are folders of checkpoints."""
    home = tmp_path / (".cache/huggingface" if not variable else "elsewhere")
    repo = home / ("" if variable == "HF_HUB_CACHE" else "hub") / "models--org--tiny"
    if variable:
        monkeypatch.setenv(variable, str(home))
    snapshot = repo / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (repo / "refs").mkdir()
    (repo / "refs/main").write_text(COMMIT)
    (snapshot / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 1}')
    (snapshot / "model.safetensors").write_bytes(safetensors())
    (snapshot / "t-Q8_0.gguf").write_bytes(gguf())

    assert 4 * PARAMETERS == num_bytes(open_model("org/tiny", offline=True))
    assert "org/tiny" == open_model("org/tiny", offline=True).name
    assert 1 == len(open_model(f"org/tiny@{COMMIT}", offline=True).blocks)
    assert 2 == len(open_model("org/tiny:Q8_0", offline=True).blocks)
    with pytest.raises(UnknownName):
        open_model("org/tiny@other", offline=True)


def test_a_cache_that_cannot_be_written(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An answer does not need it."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KVPLAN_CACHE", str(tmp_path / "file"))
    hub.put("org/tiny", config__json=CONFIG, model__safetensors=safetensors())

    assert 4 * PARAMETERS == num_bytes(open_model("org/tiny"))
    assert (0, 0) == clear_cache()


def test_an_entry_is_of_its_key_alone(tmp_path: Path) -> None:
    """Kept, found by its key, and not under another's name."""
    entry = Entry(b"data\nwith lines", 99, '"tag"', COMMIT)
    hub_cache.store(KEY, entry)

    assert entry == hub_cache.load(KEY)
    assert hub_cache.load(KEY._replace(revision="other")) is None
    other = KEY._replace(repo="org/other")
    hub_cache.store(other, entry)
    first, second = entries(tmp_path)
    shutil.copy(first, second)
    assert [None, entry] == sorted((hub_cache.load(key) for key in (KEY, other)), key=bool)


def test_nothing_is_left_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that cannot be moved to its place leaves the former one, and no other file."""
    hub_cache.store(KEY, Entry(b"old", 3))

    def refuse(*_: object) -> None:
        raise OSError

    monkeypatch.setattr("os.replace", refuse)
    hub_cache.store(KEY, Entry(b"new", 3))

    assert Entry(b"old", 3) == hub_cache.load(KEY)
    assert 1 == len(entries(tmp_path))


def test_clearing_counts(tmp_path: Path) -> None:
    """Files and bytes that were removed."""
    assert (0, 0) == clear_cache()
    hub_cache.store(KEY, Entry(b"data", 4))
    size = entries(tmp_path)[0].stat().st_size

    assert (1, size) == clear_cache()
    assert [] == entries(tmp_path)


def test_a_header_that_was_not_downloaded_whole(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, a beginning that is too short is said to be one."""
    hub.put("org/tiny-GGUF", **{"t.gguf": gguf(vocabulary=60_000)})
    monkeypatch.setattr("kvplan.readers.hub_folder.FIRST_GGUF_BYTES", 1000)
    hub.mischief["t.gguf"] = "first_part_alone"
    with pytest.raises(SourceUnreachable):
        open_model("org/tiny-GGUF/t.gguf")

    with pytest.raises(SourceUnreachable, match=r"The rest of t\.gguf .* was not downloaded"):
        open_model("org/tiny-GGUF/t.gguf", offline=True)
