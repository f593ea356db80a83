"""Compose files and Kubernetes manifests: the containers that start an engine."""

from __future__ import annotations

import time

import pytest

from kvplan.core.errors import BadFile, BadValue
from kvplan.readers.command_line import Invocation
from kvplan.readers.manifests import read_manifest
from kvplan.readers.yaml_text import read_yaml

COMPOSE = """
x-common: &common
  HF_TOKEN: ${HF_TOKEN}
services:
  model:
    image: vllm/vllm-openai:v0.11.0
    environment:
      <<: *common
      VLLM_ATTENTION_BACKEND: FLASHINFER
    command: >
      --model Qwen/Qwen3-32B
      --tensor-parallel-size ${TP:-2}
      --max-model-len 16384
  web:
    image: ghcr.io/open-webui/open-webui:main
    environment: ["OPENAI_API_BASE_URL=http://model:8000/v1"]
"""
DEPLOYMENT = """
apiVersion: v1
kind: Service
metadata: {name: qwen}
spec: {ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: qwen}
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.10.2
        command: ["/bin/sh", "-c"]
        args:
        - |
          vllm serve Qwen/Qwen3-32B \\
            --tensor-parallel-size $(TP) --max-model-len $LEN
        env:
        - {name: TP, value: "4"}
        - {name: LEN, value: "8192"}
        - name: HF_TOKEN
          valueFrom: {secretKeyRef: {name: hf, key: token}}
      - name: sidecar
        image: busybox
        args: ["sleep", "inf"]
"""
PREDICTOR = """
kind: InferenceService
spec:
  predictor:
    model:
      image: lmsysorg/sglang:v0.5.3-cu126
      command: [python3, -m, sglang.launch_server]
      args: [--model-path, Qwen/Qwen3-8B, --tp, 2, --mem-fraction-static, 0.8]
"""
TWO = """
services:
  a: {image: "vllm/vllm-openai:latest", command: "--model Qwen/Qwen3-8B"}
  b: {image: "vllm/vllm-openai:latest", command: ["--model", "Qwen/Qwen3-14B"]}
"""


def start(text: str, name: str = "") -> Invocation:
    return read_manifest(text.encode(), "it", name)


def test_compose() -> None:
    """A folded command, a default of a variable, keys that are merged in."""
    found = start(COMPOSE)

    assert ("vllm", "0.11.0", "model") == (found.engine, found.version, found.name)
    assert found.words == (
        "--model", "Qwen/Qwen3-32B", "--tensor-parallel-size", "2", "--max-model-len", "16384",
    )  # fmt: skip
    assert {"HF_TOKEN": "${HF_TOKEN}", "VLLM_ATTENTION_BACKEND": "FLASHINFER"} == found.environment


def test_deployment() -> None:
    """A shell's text among arguments, with the variables of both kinds."""
    found = start(DEPLOYMENT)

    assert ("vllm", "0.10.2", "vllm") == (found.engine, found.version, found.name)
    assert found.words == (
        "Qwen/Qwen3-32B", "--tensor-parallel-size", "4", "--max-model-len", "8192",
    )  # fmt: skip


def test_arguments_beside_a_command() -> None:
    """Numbers stay the texts that they are."""
    found = start(PREDICTOR)

    assert ("sglang", "0.5.3") == (found.engine, found.version)
    assert ("--tp", "2", "--mem-fraction-static", "0.8") == found.words[-4:]


def test_several_engines_are_listed() -> None:
    """Which one is meant has to be said, and can be."""
    with pytest.raises(BadValue, match=r"2 engines: a: vllm --model Qwen/Qwen3-8B; b: vllm"):
        start(TWO)

    assert "Qwen/Qwen3-14B" == start(TWO, "b").words[-1]


REFUSED = [
    ("services: {a: {image: nginx}}", "No container of it starts an engine"),
    ("a: 1", "has no container"),
    ("", "has no container"),
    ("a: [", "is not YAML"),
    ("a: &b [*b]", "has no container"),
    ("a: !!python/object/apply:os.system [id]", "has no container"),
    ("[" * 5_000, "nest"),
    ("{a: " * 5_000, "nest"),
    ("- " * 900, "nested too deeply"),
    ("a: \x01", "is not YAML"),
    ("#" * 10_000_000, "larger than 256 KiB"),
]


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=[text[:30] for text, _ in REFUSED])
def test_refused(text: str, words: str) -> None:
    """What is no manifest with an engine is refused in a sentence, and at once."""
    begin = time.perf_counter()
    with pytest.raises((BadFile, BadValue)) as refused:
        start(text)

    assert words in refused.value.message
    assert time.perf_counter() - begin < 1


def test_references_to_references_are_counted() -> None:
    """Nine lines that stand for a billion nodes are refused, not made."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    with pytest.raises(BadFile, match="more than 50,000 nodes"):
        read_yaml("\n".join(lines).encode(), "it")


def test_bytes_that_are_no_text() -> None:
    """The place of the first wrong byte is told."""
    with pytest.raises(BadFile, match="not UTF-8 text"):
        read_yaml(b"a: \xff\xfe", "it")
