"""Models of a hub: config, exact weights by ranges, GGUF, and what is said without an answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from kvplan.core.errors import BadFile, BadValue, KvplanError, SourceUnreachable, UnknownName
from kvplan.core.model import Model
from kvplan.readers.hf_config import read_config
from kvplan.readers.http_ranges import MAX_REDIRECTS
from kvplan.readers.http_ranges import _next as next_address
from kvplan.readers.hub import read_hub
from kvplan.readers.open_model import open_model
from tests.readers.hub_files import CONFIG, FIRST, PARAMETERS, SECOND, gguf, safetensors, shards
from tests.readers.hub_server import COMMIT, FakeHub

FILE = "model.safetensors"


def weights(model: Model) -> tuple[int, bool]:
    """Bytes, and whether a file told them."""
    assert model.weights is not None
    return model.weights.num_bytes, model.weights.exact_bytes


def small(hub: FakeHub, **files: Any) -> FakeHub:
    """A hub with one model in one file."""
    hub.put("org/tiny", config__json=CONFIG, model__safetensors=safetensors(), **files)
    return hub


def sharded(hub: FakeHub) -> FakeHub:
    """A hub with one model in two files."""
    hub.put("org/tiny", config__json=CONFIG, **shards())
    return hub


def test_a_model_in_one_file(hub: FakeHub) -> None:
    """Geometry of the config, bytes of the header, the address of the commit."""
    found = open_model(small(hub) and "org/tiny")

    assert (4 * PARAMETERS, True) == weights(found)
    assert ("org/tiny", ()) == (found.name, found.warnings)
    assert f"{hub.url}/org/tiny/resolve/{COMMIT}/config.json" == found.source


def test_a_model_in_shards(hub: FakeHub) -> None:
    """The headers of all shards of the index, each asked for once."""
    found = open_model(sharded(hub) and "org/tiny")

    assert (4 * PARAMETERS, True) == weights(found)
    assert {"config.json": 1, FIRST: 1, SECOND: 1, "model.safetensors.index.json": 1} == {
        path: hub.paths().count(path) for path in hub.paths()
    }


def test_a_long_header_comes_in_parts(hub: FakeHub) -> None:
    """A header that is longer than the first part is read in two."""
    data = safetensors(padding=1 << 18)
    size = len(data)
    hub.put("org/tiny", config__json=CONFIG, model__safetensors=data)
    found = open_model("org/tiny")

    assert (4 * PARAMETERS, True) == weights(found)
    assert ["bytes=0-131071", f"bytes=131072-{size - 1}"] == [
        asked.range for asked in hub.asked if asked.range
    ]


def test_overrides_reach_the_config(hub: FakeHub) -> None:
    """--set changes a model of the hub as any other."""
    found = open_model(small(hub) and "org/tiny", overrides={"num_hidden_layers": 3})

    assert 3 == len(found.blocks)


def test_a_revision_is_asked_for(hub: FakeHub) -> None:
    """A name with a revision, quoted."""
    open_model(small(hub) and "org/tiny@refs/pr/1")

    assert "/org/tiny/resolve/refs%2Fpr%2F1/config.json" == hub.asked[0].path


def test_the_token_goes_to_the_hub_alone(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not to where the hub redirects."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub.has_cdn = True
    found = open_model(sharded(hub) and "org/tiny")

    assert (4 * PARAMETERS, True) == weights(found)
    assert {"Bearer hf_secret"} == {asked.token for asked in hub.asked if asked.server == "hub"}
    assert [""] * 2 == [asked.token for asked in hub.asked if asked.server == "cdn"]


@pytest.mark.parametrize("where", ["HF_TOKEN_PATH", "HF_HOME", "home"])
def test_a_stored_token(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """The file that huggingface_hub's login writes."""
    folder = tmp_path / (".cache/huggingface" if where == "home" else "elsewhere")
    folder.mkdir(parents=True)
    (folder / "token").write_text("hf_stored\n")
    if where != "home":
        monkeypatch.setenv(where, str(folder / "token" if where == "HF_TOKEN_PATH" else folder))
    open_model(small(hub) and "org/tiny")

    assert {"Bearer hf_stored"} == {asked.token for asked in hub.asked}


@pytest.mark.parametrize(
    ("status", "error", "kind", "said"),
    [
        (401, "", SourceUnreachable, "gated or private: the hub answered 401"),
        (
            403,
            "GatedRepo",
            SourceUnreachable,
            r"Accept its licence at .*/org/tiny and set HF_TOKEN",
        ),
        (401, "RepoNotFound", UnknownName, "a private model needs HF_TOKEN"),
        (404, "RepoNotFound", UnknownName, "It is not on http"),
        (404, "RevisionNotFound", UnknownName, "No revision of org/tiny is named 'main'"),
        (429, "", SourceUnreachable, "limits requests"),
        (500, "", SourceUnreachable, r"answered 500 for /org/tiny/resolve/main/config\.json"),
    ],
)
def test_a_refused_config(
    hub: FakeHub, status: int, error: str, kind: type[KvplanError], said: str
) -> None:
    """What a status and the hub's own word for it mean."""
    small(hub).statuses["org/tiny/config.json"] = (status, error)

    with pytest.raises(kind, match=said):
        open_model("org/tiny")


def test_a_token_without_access(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint speaks of the token, and does not show it."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    small(hub).statuses["org/tiny/config.json"] = (403, "GatedRepo")

    with pytest.raises(SourceUnreachable, match="the account of the token") as caught:
        open_model("org/tiny")
    assert "hf_secret" not in str(caught.value)


def test_an_unknown_model_has_near_misses(hub: FakeHub) -> None:
    """The catalogue's nearest."""
    with pytest.raises(UnknownName, match=r"Did you mean .*Qwen/Qwen3-32B") as caught:
        open_model("Qwen/Qwen3-32Bb")
    assert 2 == caught.value.exit_status
    assert hub.asked


@pytest.mark.parametrize(
    ("mischief", "kind", "said"),
    [
        ("truncated", SourceUnreachable, "cannot be reached"),
        ("reset", SourceUnreachable, "cannot be reached"),
        ("silent", SourceUnreachable, r"did not answer within 0\.2 seconds"),
        ("round", SourceUnreachable, f"redirects more than {MAX_REDIRECTS} times"),
        ("to:file:///etc/passwd", SourceUnreachable, "redirects to file:"),
        ("to:http://[", SourceUnreachable, "cannot be reached"),
        ("zipped", BadFile, "sends gzip, which was not asked for"),
        ("no_ranges", BadFile, "is larger than 6 MiB"),
        ("chunked_without_end", BadFile, "is larger than 6 MiB"),
        ("no_content_range", BadFile, "a part of a file that was asked for whole"),
    ],
)
def test_a_config_that_does_not_come(
    hub: FakeHub, mischief: str, kind: type[KvplanError], said: str
) -> None:
    """Each failure is a sentence, and nothing is read without end."""
    small(hub).mischief["config.json"] = mischief

    with pytest.raises(kind, match=said):
        read_hub("org/tiny", _no_model, timeout_s=0.2)
    assert hub.sent_bytes < 1 << 27


def _no_model(*_: object) -> Model:
    raise AssertionError


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b'{"model_type": "llama", "hidden_size": -1}']
)
def test_a_config_that_is_none(hub: FakeHub, content: bytes) -> None:
    """Garbage is a bad file."""
    hub.put("org/tiny", config__json=content)

    with pytest.raises(BadFile):
        open_model("org/tiny")


@pytest.mark.parametrize(
    ("mischief", "said"),
    [
        ("no_ranges", "ignores range requests"),
        ("truncated_part", "cannot be reached"),
        ("reset", "cannot be reached"),
        ("silent", "did not answer"),
    ],
)
def test_without_headers_the_config_stands(hub: FakeHub, mischief: str, said: str) -> None:
    """Where ranges are ignored, or the shards do not come: the config's bytes, with a warning."""
    sharded(hub).mischief[".safetensors"] = mischief
    found = read_hub(
        "org/tiny",
        lambda raw, name, source: read_config(raw, name=name, source=source),
        timeout_s=0.2,
    )

    assert not weights(found)[1]
    assert "Weights are the config's" in found.warnings[-1]
    assert said in found.warnings[-1]
    assert hub.sent_bytes < 1 << 27


def test_gated_shards_leave_the_config(hub: FakeHub) -> None:
    """403 on the shards alone."""
    sharded(hub).statuses[f"org/tiny/{FIRST}"] = (403, "GatedRepo")
    found = open_model("org/tiny")

    assert not weights(found)[1]
    assert "gated or private" in found.warnings[-1]


@pytest.mark.parametrize("mischief", ["other_part", "no_content_range"])
def test_another_part_than_was_asked_for(hub: FakeHub, mischief: str) -> None:
    """A header that is not where it was asked for is no header."""
    small(hub).mischief[FILE] = mischief

    with pytest.raises(BadFile, match=r"answered bytes 0 to 131,071 with the range"):
        open_model("org/tiny")


def test_a_file_that_is_no_safetensors(hub: FakeHub) -> None:
    """Garbage behind a good name."""
    hub.put("org/tiny", config__json=CONFIG, model__safetensors=b"<html>" * 40)

    with pytest.raises(BadFile, match="no safetensors file, or a damaged one"):
        open_model("org/tiny")


def test_no_hub_at_all(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")

    with pytest.raises(SourceUnreachable, match=r"127\.0\.0\.1 cannot be reached") as caught:
        open_model("org/tiny")
    assert 3 == caught.value.exit_status


@pytest.mark.parametrize("endpoint", ["ftp://x", "http://me:secret@x", "file:///", "http://x?y"])
def test_an_endpoint_that_is_none(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    """Only http and https, without a password."""
    monkeypatch.setenv("HF_ENDPOINT", endpoint)

    with pytest.raises(BadValue, match="HF_ENDPOINT is no address"):
        open_model("org/tiny")


def test_a_gguf_of_a_quantisation(hub: FakeHub) -> None:
    """By its quantisation, its file, and as the only one."""
    hub.put("org/tiny-GGUF", **{"t-Q4_K_M.gguf": gguf(), "t-Q8_0.gguf": gguf(vocabulary=9)})
    hub.put("org/one", **{"t-Q8_0.gguf": gguf()}, config__json=CONFIG)

    assert "org/tiny-GGUF:Q8_0" == open_model("org/tiny-GGUF:Q8_0").name
    assert 9 == open_model("org/tiny-GGUF/t-Q8_0.gguf").vocab_size
    assert 2 == len(open_model("org/one").blocks)
    assert "t-Q4_K_M.gguf is answered" in open_model("org/tiny-GGUF").warnings[-1]
    with pytest.raises(BadValue, match="--set changes keys of a config"):
        open_model("org/tiny-GGUF:Q8_0", overrides={"x": 1})


def test_a_gguf_in_several_files(hub: FakeHub) -> None:
    """The other files of a split model are asked for in their turn."""
    names = [f"Q8_0/t-Q8_0-0000{place}-of-00002.gguf" for place in (1, 2)]
    parts = [gguf(split_no=place, split_count=2) for place in (0, 1)]
    hub.put("org/tiny-GGUF", **dict(zip(names, parts, strict=True)))
    found = open_model("org/tiny-GGUF:Q8_0")

    assert (2 * 64 * 8 * 4, True) == weights(found)


def test_a_long_vocabulary_comes_in_parts(hub: FakeHub) -> None:
    """A header of megabytes, and no more than it has."""
    hub.put("org/tiny-GGUF", **{"t.gguf": gguf(vocabulary=60_000)})

    assert 60_000 == open_model("org/tiny-GGUF").vocab_size
    assert 2 == hub.paths().count("t.gguf")


def test_a_file_that_is_not_there(hub: FakeHub) -> None:
    """Named with its repository."""
    with pytest.raises(UnknownName, match=r"No file of org/tiny is named 'x\.gguf'"):
        open_model("org/tiny/x.gguf")


def test_nothing_that_could_be_read(hub: FakeHub) -> None:
    """A repository with neither config nor GGUF; one without safetensors."""
    hub.put("org/data", README__md=b"#")
    hub.put("org/old", config__json=CONFIG, pytorch_model__bin=b"")

    with pytest.raises(BadFile, match=r"org/data has no \.gguf file"):
        open_model("org/data")
    assert "org/old has no safetensors" in open_model("org/old").warnings[-1]


def test_a_mirror_without_lists(hub: FakeHub) -> None:
    """Where the files cannot be listed and no safetensors are known, the config stands."""
    hub.put("org/tiny", config__json=CONFIG)
    hub.statuses["api/org/tiny"] = (404, "")

    assert "does not list the files of org/tiny" in open_model("org/tiny").warnings[-1]


def test_an_answer_that_drips(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer has an end in time too, however often a byte comes."""
    monkeypatch.setattr("kvplan.readers.http_ranges.MAX_ANSWER_S", -1.0)
    small(hub)

    with pytest.raises(SourceUnreachable, match="seconds for an answer"):
        open_model("org/tiny")


def test_a_token_that_is_none(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could break out of a header is refused, and not shown."""
    monkeypatch.setenv("HF_TOKEN", "hf_secret\r\nHost: other")

    with pytest.raises(BadValue, match="no token has") as caught:
        open_model("org/tiny")
    assert "secret" not in str(caught.value)
    assert [] == hub.asked


def test_a_redirect_never_leaves_https() -> None:
    """From https to http a reader in between could answer for the hub."""
    asked = httpx.Request("GET", "https://hub/a")
    moved = httpx.Response(302, headers={"Location": "http://hub/a"}, request=asked)

    with pytest.raises(SourceUnreachable, match="redirects to http:, which is not followed"):
        next_address(moved)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("org/tiny.gguf", SourceUnreachable, r"There is no file org/tiny\.gguf"),
        ("./org/tiny/x.gguf", SourceUnreachable, "There is no file"),
        ("org/name:tag", UnknownName, "It is not on http"),
        ("ollama/name:tag", UnknownName, "Pull it with: ollama pull"),
        ("name:tag", UnknownName, "Pull it with: ollama pull"),
    ],
)
def test_what_a_name_means(hub: FakeHub, name: str, kind: type[KvplanError], said: str) -> None:
    """Paths are paths, Ollama's names Ollama's, and org/name:tag may be the hub's."""
    with pytest.raises(kind, match=said):
        open_model(name)
    assert ("org/name" in name) == bool(hub.asked)
