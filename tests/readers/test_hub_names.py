"""How models of the hub are named, and which GGUF of a repository a quantisation means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kvplan.core.errors import BadValue, UnknownName
from kvplan.readers.hub_gguf import choose
from kvplan.readers.hub_name import HubName, parse_hub_name


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b", {}),
        ("a/b@main", {"revision": "main"}),
        ("a/b@refs/pr/1", {"revision": "refs/pr/1"}),
        ("a/b:Q4_K_M", {"quant": "Q4_K_M"}),
        ("a/b@v1.0:Q4_K_M", {"revision": "v1.0", "quant": "Q4_K_M"}),
        ("a/b/c.gguf", {"file": "c.gguf"}),
        ("a/b/Q4 K/c-00001-of-00002.gguf", {"file": "Q4 K/c-00001-of-00002.gguf"}),
        ("hf:a/b", {"prefixed": True}),
        ("hf.co/a/b:Q8_0", {"quant": "Q8_0"}),
        ("https://huggingface.co/a/b", {"prefixed": True}),
        ("https://huggingface.co/a/b/", {"prefixed": True}),
        ("https://huggingface.co/a/b/tree/v2", {"revision": "v2", "prefixed": True}),
        (
            "https://huggingface.co/a/b/blob/main/c.gguf",
            {"revision": "main", "file": "c.gguf", "prefixed": True},
        ),
    ],
)
def test_names(text: str, expected: Mapping[str, Any]) -> None:
    """Repository, revision, quantisation, file."""
    assert HubName(id="a/b", **expected) == parse_hub_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "a", "a/b/c", "/a/b", "./b", "../b", "a/..", "a..b/c", "a/b@", "a/b@..", "a/b@x/../y",
        "a/b/../c.gguf", "a b/c", "é/b", "a/b?x", "a/b#x", "a/b%2e", "a\n/b", "a/b\n",
        f"a/{'b' * 97}", "a/b@c d", "https://other.host/a/b", "a/" * 400,
    ],
)  # fmt: skip
def test_what_is_no_name(text: str) -> None:
    """Neither paths, nor other addresses, nor what would change one."""
    assert parse_hub_name(text) is None


UNSLOTH = [
    "BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf", "m-IQ4_XS.gguf",
    "m-Q4_K_M.gguf", "m-Q4_K_S.gguf", "m-UD-Q4_K_XL.gguf", "m-UD-Q4_K_M.gguf", "mmproj-BF16.gguf",
    "config.json", "imatrix.gguf",
]  # fmt: skip


@pytest.mark.parametrize(
    ("quant", "expected"),
    [
        ("Q4_K_M", "m-Q4_K_M.gguf"),
        ("q4_k_s", "m-Q4_K_S.gguf"),
        ("UD-Q4_K_M", "m-UD-Q4_K_M.gguf"),
        ("Q4_K_XL", "m-UD-Q4_K_XL.gguf"),
        ("BF16", "BF16/m-BF16-00001-of-00002.gguf"),
        ("", "m-Q4_K_M.gguf"),
    ],
)
def test_the_file_of_a_quantisation(quant: str, expected: str) -> None:
    """In any case, in a folder, in parts, of a second recipe where it is named or alone."""
    assert expected == choose("o/r", UNSLOTH, quant).file


@pytest.mark.parametrize(
    ("names", "quant", "kind", "said"),
    [
        (UNSLOTH, "Q4", UnknownName, r"No quantisation of o/r is named 'Q4'\. Write o/r:BF16, or"),
        (UNSLOTH, "XS", UnknownName, "IQ4_XS"),
        (["a-Q8_0.gguf", "b-Q8_0.gguf"], "Q8_0", BadValue, r"2 files of Q8_0\. Write o/r/a-Q8_0"),
        (["a-Q8_0.gguf", "b-Q6_K.gguf"], "", BadValue, "has 2 GGUF files. Write o/r:Q6_K, or one"),
    ],
)
def test_a_file_that_cannot_be_told(
    names: list[str], quant: str, kind: type[Exception], said: str
) -> None:
    """With how to name those there are."""
    with pytest.raises(kind, match=said):
        choose("o/r", names, quant)
