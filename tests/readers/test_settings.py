"""kvplan.toml: where it is found, what it may hold, and that nothing wrong in it passes unseen."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvplan.core.errors import BadFile, KvplanError, SourceUnreachable
from kvplan.core.units import GIB, MIB
from kvplan.readers.devices import devices, find_device, own_devices
from kvplan.readers.own_cards import KEYS as CARD_KEYS
from kvplan.readers.settings import KEYS as SETTINGS_KEYS
from kvplan.readers.settings import Settings, in_use, open_settings, read_settings, use


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KVPLAN_CONFIG")


def read(folder: Path, text: str | bytes) -> Settings:
    path = folder / "kvplan.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(path, "kvplan.toml")


# A file, and words that its sentence has.
REFUSED = [
    ("enigne = 'vllm'", ["kvplan.toml: enigne", "Did you mean engine?", "exchange-rate"]),
    ("exchange_rate = 0.9", ["exchange_rate", "Did you mean exchange-rate?"]),
    ("engine = 3", ["kvplan.toml: engine is a number (3)", "a text is needed"]),
    ("engine = ''", ["engine", "not a text of one line"]),
    ('gpu = "a\\nb"', ["gpu", "not a text of one line"]),
    ('gpu = "\\u001b[31m"', ["gpu", "not a text of one line"]),
    (f"gpu = '{'h' * 201}'", ["gpu", "not a text of one line"]),
    ("gpu = ['h100']", ["gpu is a list", "a text is needed"]),
    ("engine = 2026-01-01", ["engine is a time", "a text is needed"]),
    ("currency = 'doubloons'", ["kvplan.toml: currency", "not a currency"]),
    ("currency = 'EUR'\nexchange-rate = 0", ["exchange-rate = 0", "more than 0"]),
    ("currency = 'EUR'\nexchange-rate = -1", ["exchange-rate = -1"]),
    ("currency = 'EUR'\nexchange-rate = nan", ["exchange-rate = nan"]),
    ("currency = 'EUR'\nexchange-rate = inf", ["exchange-rate = inf"]),
    ("currency = 'EUR'\nexchange-rate = true", ["exchange-rate is true or false"]),
    ("currency = 'EUR'\nexchange-rate = '0.9'", ["exchange-rate is a text", "a number is needed"]),
    ("currency = 'usd'\nexchange-rate = 0.9", ["exchange-rate is of USD for a dollar"]),
    ("exchange-rate = 0.9", ["of a currency, and none is named"]),
    ("cards = 3", ["cards is a number (3)", "a table is needed", "[cards]"]),
    ("[cards]\nl4 = 0.8", ["kvplan.toml: cards.l4 is a number (0.8)", "[cards.l4]"]),
    ("[cards.l4]\nprize = 1", ["cards.l4.prize", "Did you mean price?"]),
    ("[cards.l4]\nprice = '2.10'", ["cards.l4.price is a text ('2.10')", "price = 2.95"]),
    ("[cards.l4]\nprice = -0.5", ["cards.l4.price = -0.5", "from 0"]),
    ("[cards.l4]\nprice = nan", ["cards.l4.price = nan"]),
    ("[cards.l4]\nprice = 1e300", ["cards.l4.price = 1e+300"]),
    (f"[cards.l4]\nprice = 1{'0' * 400}", ["cards.l4.price = 1000", "…"]),
    ("[cards.l4]\nmemory = 24", ["cards.l4.memory is a number (24)", "a text is needed"]),
    ("[cards.l4]\nmemory = '24'", ["cards.l4.memory: The size '24' has no unit"]),
    ("[cards.l4]\nmemory = '0GiB'", ["cards.l4.memory is 0"]),
    ("[cards.l4]\nbandwidth = '0GB/s'", ["cards.l4.bandwidth is 0"]),
    ("[cards.l4]\nlike = 'l40s'", ["cards.l4.like is of a card of one's own", "L4"]),
    ("[cards.l4]\ntflops = {fp6 = 1}", ["cards.l4.tflops.fp6", "bf16"]),
    ("[cards.l4]\ntflops = {bf16 = 'fast'}", ["cards.l4.tflops.bf16 is a text ('fast')"]),
    ("[cards.l4]\ntflops = 242", ["cards.l4.tflops is a number (242)", "a table is needed"]),
    ("[cards.h100]\nprice = 2", ["h100 is read as h100-sxm-80gb", "Write the form"]),
    ("[cards.h100-sxm]\nprice = 2\n[cards.h100-sxm-80gb]", ["is h100-sxm-80gb", "twice"]),
    (
        "[cards.h100-smx-80gb]\nprice = 2",
        ["cards.h100-smx-80gb", "Did you mean h100-sxm-80gb", "and memory"],
    ),
    (
        "[cards.ours]\nprice = 2",
        ["cards.ours", "No device is named 'ours'. A card of one's own has"],
    ),
    ("[cards.ours]\nlike = 'h101'", ["cards.ours.like: No device is named 'h101'"]),
    ("[cards.ours]\nlike = 'h100'", ["cards.ours.like", "Write the form"]),
    ("[cards.ours]\nmemory='1GiB'\nvendor='Nvidea'", ["cards.ours.vendor", "NVIDIA"]),
    ("[cards.ours]\nvendor='AMD'\nmemory='1GiB'\naliases='x'", ["cards.ours.aliases is a text"]),
    (
        "[cards.ours]\nvendor='AMD'\nmemory='1GiB'\naliases=[1]",
        ["cards.ours", "aliases[0]", "is a number (1)"],
    ),
    (
        "[cards.ours]\nvendor='AMD'\nmemory='1GiB'\naliases=['NVIDIA L4']",
        ["'NVIDIA L4', which l4 has"],
    ),
    (
        "[cards.ours]\nvendor='AMD'\nmemory='1GiB'\nunified-memory=1",
        ["unified-memory", "true or false"],
    ),
    ("[cards.ours]\nlike = 'inferentia2'", ["cards.ours has no memory", "81559MiB"]),
    ("[cards.l4-mig-1g-10gb]\nprice = 1", ["cards.l4-mig-1g-10gb: L4 has no MIG slices"]),
    ("[cards.ours]\nlike = 'l4-mig-1g-10gb'", ["cards.ours.like: L4 has no MIG slices"]),
    ("[cards.ours]\nmemory = '1GiB'", ["cards.ours has no vendor", "NVIDIA"]),
    ("[cards.a]\nlike='l4'\n[cards.A]\nlike='l4'", ["cards.A", "which a has"]),
    ("[cards.'']\nmemory='1GiB'", ["the name of a card", "cannot be read"]),
    ('[cards."a\\nb"]\nmemory="1GiB"', ["the name of a card", "cannot be read"]),
    (f"[cards.{'x' * 61}]\nmemory='1GiB'", ["the name of a card", "cannot be read"]),
    ("".join(f"[cards.c{n}]\nlike='l4'\n" for n in range(201)), ["more than 200 cards"]),
    ("engine = 'vllm'\nengine = 'sglang'", ["not TOML", "Cannot overwrite a value"]),
    ("engine = vllm", ["kvplan.toml is not TOML", "line 1"]),
    ("\n[cards", ["not TOML", "']'"]),
    ("x = " + "[" * 20_000, ["nested too deeply"]),
    ("x = " + "9" * 20_000, ["too many digits"]),
    ("a." * 10_000 + "b = 1", ["dots in line 1"]),
    ("#" * (70 << 10), ["larger than 65,536 B"]),
    (b"engine = '\xff'", ["not UTF-8 text (byte 10)"]),
    (b"\x00\x01\x02", ["not TOML"]),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[f"{str(t)[:40]!r}" for t, _ in REFUSED])
def test_what_is_wrong_is_a_sentence(text: str | bytes, words: list[str], tmp_path: Path) -> None:
    """It names the file, the key and what would do; nothing is left out unseen."""
    with pytest.raises(BadFile) as found:
        read(tmp_path, text)

    assert [] == [word for word in words if word not in str(found.value)]
    assert "kvplan.toml" in str(found.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    """A folder of the name is told, and so is a file that is named and is not there."""
    (tmp_path / "kvplan.toml").mkdir()

    with pytest.raises(BadFile, match="not a regular file"):
        read_settings(tmp_path / "kvplan.toml", "kvplan.toml")
    with pytest.raises(SourceUnreachable, match="cannot be read"):
        open_settings(str(tmp_path / "absent.toml"))


def test_every_value_says_where_it_is_from(tmp_path: Path) -> None:
    """A currency is read in capitals; a rate is a number."""
    found = read(tmp_path, "engine='sglang'\ngpu='l4'\ncurrency='eur'\nexchange-rate=1\n")

    assert {
        "engine": ("sglang", "kvplan.toml: engine"),
        "gpu": ("l4", "kvplan.toml: gpu"),
        "currency": ("EUR", "kvplan.toml: currency"),
        "exchange_rate": (1.0, "kvplan.toml: exchange-rate"),
    } == found.values


def test_an_empty_file_says_nothing(tmp_path: Path) -> None:
    """Neither does a byte-order mark."""
    assert Settings(file="kvplan.toml") == read(tmp_path, "") == read(tmp_path, b"\xef\xbb\xbf#")


def test_a_known_card_with_a_price(tmp_path: Path) -> None:
    """By any name that means one form; the price is told in dollars, too, where a rate is."""
    text = 'currency = "EUR"\nexchange-rate = 0.5\n[cards."NVIDIA L4"]\nprice = 0.4\n'
    (card,) = read(tmp_path, text).cards
    price = card.price

    assert price is not None
    assert ("l4", 0.4, "EUR", 0.8) == (
        card.name, price.per_hour, price.currency, price.usd_per_hour,
    )  # fmt: skip
    assert 'kvplan.toml: cards."NVIDIA L4".price' == price.source
    assert find_device("l4")[0].memory_bytes == card.memory_bytes


def test_a_known_card_may_lack_a_memory(tmp_path: Path) -> None:
    """What a driver reports may be passed with the question; its price is what it is."""
    (card,) = read(tmp_path, "[cards.inferentia2]\nprice = 0.76\n").cards

    assert ("inferentia2", None) == (card.name, card.memory_bytes)


def test_a_card_like_a_known_one(tmp_path: Path) -> None:
    """It has that one's figures and rules but those that are its own, each with its source."""
    text = """
    [cards.ours]
    like = "h100-sxm-80gb"
    title = "Our H100"
    memory = "95830MiB"
    tflops = { fp8 = 1500 }
    aliases = ["NVIDIA H100 for us"]
    """
    with use(read(tmp_path, text)):
        found, said = find_device("nvidia h100 FOR US")
    like = find_device("h100-sxm-80gb")[0]

    assert () == said
    assert ("ours", "Our H100", "h100-sxm-80gb") == (found.name, found.title, found.kind)
    assert (95830 * MIB, None) == (found.memory_bytes, found.framework_memory_bytes)
    assert "kvplan.toml: cards.ours.memory" == found.memory_note
    assert "as h100-sxm-80gb (kvplan.toml: cards.ours.like)" == found.bandwidth_note
    assert {**like.dense_flops, "fp8": 1500 * 10**12} == found.dense_flops
    assert like.link_bytes_per_s == found.link_bytes_per_s
    assert (None, ()) == (found.price, found.usual_for)


def test_a_card_from_nothing(tmp_path: Path) -> None:
    """What is not said is not known."""
    text = """
    [cards.chip]
    vendor = "amd"
    memory = "64GiB"
    bandwidth = "2TB/s"
    link = "50GB/s"
    power = 400
    unified-memory = true
    """
    (card,) = read(tmp_path, text).cards

    assert ("chip", "AMD", 64 * GIB) == (card.name, card.vendor, card.memory_bytes)
    assert (2 * 10**12, 5 * 10**10, 400.0) == (
        card.bandwidth_bytes_per_s, card.link_bytes_per_s, card.tdp_w,
    )  # fmt: skip
    assert (True, {}, None) == (card.unified_memory, card.dense_flops, card.price)


def test_cards_are_known_within_use_alone(tmp_path: Path) -> None:
    """One of one's own is the last; one with a shipped name stands in its place."""
    shipped = [device.name for device in devices()]
    settings = read(
        tmp_path, "[cards.ours]\nvendor = 'AMD'\nmemory = '9GiB'\n[cards.l4]\nprice = 0\n"
    )
    with use(settings):
        inside = [device.name for device in devices()]
        assert settings == in_use()
        assert find_device("l4")[0].price is not None

    assert [*shipped, "ours"] == inside
    assert (None, (), None) == (in_use(), own_devices(), find_device("l4")[0].price)
    assert shipped == [device.name for device in devices()]


def test_a_slice_has_no_price_of_the_whole_card(tmp_path: Path) -> None:
    """It has its own where the file gives it one."""
    card = "[cards.h100-sxm-80gb]\nprice = 2\n"
    with use(read(tmp_path, card)):
        assert None is find_device("h100-mig-3g-40gb")[0].price
    with use(read(tmp_path, f"{card}[cards.h100-sxm-80gb-mig-3g-40gb]\nprice = 0.9\n")):
        found = find_device("h100-mig-3g-40gb")[0]

    assert found.price is not None
    assert (0.9, True) == (found.price.per_hour, found.sliced)


LAST = "currency='EUR'\nexchange-rate=2\n[cards.ours]\nlike='l4'\nprice=1\ntflops={bf16=1}\n"


@given(st.binary(max_size=40), st.integers(0, len(LAST)), st.integers(0, 20))
def test_any_bytes_are_read_or_refused(data: bytes, place: int, cut: int) -> None:
    """A file with anything put in, or left out, anywhere is settings or a sentence."""
    text = LAST.encode()
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KvplanError):
        read(Path(folder), text[:place] + data + text[place + cut :])


class Places:
    """Folders: a project with a folder in it, one outside of any, and the person's."""

    def __init__(self, root: Path) -> None:
        self.person = root / ".config" / "kvplan"
        self.outside = root / "else" / "where"
        self.project = root / "work" / "project"
        self.inner = self.project / "a" / "b"
        for folder in (self.person, self.outside, self.inner, self.project / ".git"):
            folder.mkdir(parents=True)


def say(folder: Path, engine: str) -> None:
    (folder / "kvplan.toml").write_text(f"engine = '{engine}'\n")


# Where files are, where one stands, and whose counts under which name.
FOUND = [
    (["person", "project", "inner"], "inner", "inner", "kvplan.toml"),
    (["person", "project"], "inner", "project", "../../kvplan.toml"),
    (["person", "project"], "project", "project", "kvplan.toml"),
    (["person"], "inner", "person", "~/.config/kvplan/kvplan.toml"),
    (["person", "project"], "outside", "person", "~/.config/kvplan/kvplan.toml"),
    (["outside"], "outside", "outside", "kvplan.toml"),
    (["above"], "inner", None, None),
    (["beside"], "outside", None, None),
    ([], "inner", None, None),
]


@pytest.mark.parametrize(("written", "here", "counts", "name"), FOUND)
def test_the_first_file_counts_alone(
    written: list[str],
    here: str,
    counts: str | None,
    name: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The folder's, one above it within its project, the person's; none above a project's root,
    and none above a folder that is in no project.
    """
    places = Places(tmp_path)
    folders = {**vars(places), "above": places.project.parent, "beside": places.outside.parent}
    for one in written:
        say(folders[one], one)
    monkeypatch.chdir(folders[here])
    found = open_settings()

    assert (counts, name) == (
        (None, None) if found is None else (found.values["engine"].value, found.file)
    )


def test_a_named_file_counts_before_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One named with the question before that of the variable, which an empty one is not."""
    for name in ("asked", "set", "here"):
        (tmp_path / f"{name}.toml").write_text(f"engine = '{name}'\n")
    (tmp_path / "here.toml").rename(tmp_path / "kvplan.toml")
    monkeypatch.chdir(tmp_path)
    found = [open_settings()]
    monkeypatch.setenv("KVPLAN_CONFIG", "~/set.toml")
    found += [open_settings(), open_settings("asked.toml")]
    monkeypatch.setenv("KVPLAN_CONFIG", "")
    found.append(open_settings())

    assert ["here", "set", "asked", "here"] == [s and s.values["engine"].value for s in found]
    assert "~/set.toml: engine" == (found[1] and found[1].values["engine"].source)


def test_the_persons_folder_may_be_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """XDG_CONFIG_HOME, if it is an absolute path."""
    places = Places(tmp_path)
    say(places.person, "usual")
    (tmp_path / "other" / "kvplan").mkdir(parents=True)
    say(tmp_path / "other" / "kvplan", "other")
    monkeypatch.chdir(places.outside)
    found = []
    for folder in (str(tmp_path / "other"), "other", ""):
        monkeypatch.setenv("XDG_CONFIG_HOME", folder)
        found.append(open_settings())

    assert ["other", "usual", "usual"] == [s and s.values["engine"].value for s in found]


def test_a_folder_that_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever stands in a removed folder has the person's file, or none."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()

    assert None is open_settings()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="needs a file that is closed")
def test_a_file_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is there, so it is not passed over."""
    say(tmp_path, "vllm")
    (tmp_path / "kvplan.toml").chmod(0)
    monkeypatch.chdir(tmp_path)

    with pytest.raises(KvplanError, match="cannot be read"):
        open_settings()


def test_the_page_shows_the_file_and_every_key() -> None:
    """What docs/settings.md begins with is the file that its commands are run with."""
    docs = Path(__file__).parents[2] / "docs"
    page, file = (docs / "settings.md").read_text(), docs / "settings" / "kvplan.toml"
    keys = (*SETTINGS_KEYS[:-1], *CARD_KEYS)

    assert f"```toml\n{file.read_text()}```" in page
    assert [] == [key for key in keys if f"`{key}`" not in page]
    assert 2 == len(read_settings(file, "kvplan.toml").cards)
