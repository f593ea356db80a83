"""The files that start an option: a shell line, a compose file, a Kubernetes manifest.

Every replica is a server of its own; in front of several goes a router that keeps a conversation on
the server that has its prefix.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kvplan.core.errors import BadValue
from kvplan.planning.advise.outcome import Outcome
from kvplan.planning.support import host_cards

COMMAND: Final = "command"
COMPOSE: Final = "compose"
K8S: Final = "k8s"
TOKEN: Final = "HF_TOKEN"  # gated weights; what the shell or an optional secret has
RESOURCE: Final = {"NVIDIA": "nvidia.com/gpu", "AMD": "amd.com/gpu"}


class Image(NamedTuple):
    """An image, whether its entry point is the server, its port and health path, and the file of
    the engine's sources that it is built from where none is published under the name.
    """

    name: str
    entry: bool
    port: int
    health: str
    built: str = ""


# vLLM 0.32.0, docs/getting_started/installation/gpu.cuda.inc.md and gpu.rocm.inc.md; SGLang 0.5.23,
# docs/get_started/install.md (its images for AMD are tagged by ROCm and chip, and are not known
# here); llama.cpp, docs/docker.md, under the name that it gives what is built from its sources.
IMAGES: Final[Mapping[tuple[str, str], Image]] = {
    ("vllm", "NVIDIA"): Image("vllm/vllm-openai:v{}", True, 8000, "/health"),
    ("vllm", "AMD"): Image("vllm/vllm-openai-rocm:v{}", True, 8000, "/health"),
    ("sglang", "NVIDIA"): Image("lmsysorg/sglang:v{}", False, 30000, "/health"),
    ("llama.cpp", "NVIDIA"): Image(
        "local/llama.cpp:server-cuda", True, 8080, "/health", ".devops/cuda.Dockerfile"
    ),
    ("llama.cpp", "AMD"): Image(
        "local/llama.cpp:server-rocm", True, 8080, "/health", ".devops/rocm.Dockerfile"
    ),
}


class Server(NamedTuple):
    """One replica as a container; ``note`` is a comment on its image."""

    name: str
    image: str
    note: str
    command: list[str]  # empty where the image's entry point is the server
    args: list[str]
    port: int
    health: str
    gpus: int
    vendor: str


def emit(one: Outcome, form: str) -> str:
    """The text of a form.

    Raises:
        BadValue: an unknown form, or what a container of one host cannot start.
    """
    forms: dict[str, Callable[[Outcome], str]] = {
        COMMAND: command,
        COMPOSE: compose,
        K8S: k8s,
    }
    if form not in forms:
        raise BadValue(f"--emit {form[:40]!r} is not known.", f"Known: {', '.join(forms)}.")
    return forms[form](one)


def command(one: Outcome) -> str:
    """The line that starts one replica."""
    plan = one.sized.plan
    return f"{plan.command}\n" if plan else "\n"


def server_of(one: Outcome) -> Server:
    """One replica of an outcome as a container.

    Raises:
        BadValue: an engine without an image that is known, or a replica on several hosts.
    """
    candidate, plan = one.sized.candidate, one.sized.plan
    vendor = candidate.device.vendor
    image = IMAGES.get((candidate.engine.name, vendor))
    if image is None or plan is None or not plan.starts:
        known = ", ".join(f"{engine} on {cards}" for engine, cards in IMAGES)
        raise BadValue(
            f"No container of {candidate.engine.name} on {vendor} is known to start this.",
            f"--emit command gives the line; images are known of {known}.",
        )
    if one.sized.cards > host_cards(candidate.device):
        raise BadValue(
            f"A replica on {one.sized.cards} cards takes two hosts, which one container is not.",
            "Start the line of --emit command on a Ray cluster of both.",
        )
    words = [word for word in shlex.split(plan.command) if not _is_setting(word)]
    name = image.name.format(plan.version)
    built = f"docker build -t {name} --target server -f {image.built} ."
    return Server(
        name=_name(candidate.variant.model.name),
        image=name,
        note=f"# In the engine's sources: {built}\n" if image.built else "",
        command=[] if image.entry else words[:3],
        args=_arguments(words, image.entry),
        port=image.port,
        health=image.health,
        gpus=one.sized.cards,
        vendor=vendor,
    )


def _arguments(words: list[str], entry: bool) -> list[str]:
    """The words after the program; vLLM's image takes the model as ``serve`` does."""
    if not entry:
        return words[3:]
    return words[2:] if words[0] == "vllm" else words[1:]


def _is_setting(word: str) -> bool:
    return bool(re.match(r"[A-Z_]+=", word))


def _name(model: str) -> str:
    """A name that Kubernetes takes."""
    plain = re.sub(r"[^a-z0-9]+", "-", model.rpartition("/")[2].lower()).strip("-")
    return plain[:50].strip("-") or "model"


def compose(one: Outcome) -> str:
    """A compose file: a service a replica, each with cards of its own."""
    server = server_of(one)
    services = [_service(server, place, one.replicas) for place in range(one.replicas)]
    return server.note + "services:\n" + "".join(services) + "volumes:\n  models: {}\n"


def _service(server: Server, place: int, replicas: int) -> str:
    name = server.name if replicas == 1 else f"{server.name}-{place}"
    first = place * server.gpus
    ids = [str(card) for card in range(first, first + server.gpus)]
    entry = f"    entrypoint: {json.dumps(server.command)}\n" if server.command else ""
    if server.vendor == "NVIDIA":
        cards = (
            "    deploy:\n      resources:\n        reservations:\n          devices:\n"
            f"            - driver: nvidia\n              device_ids: {json.dumps(ids)}\n"
            "              capabilities: [gpu]\n"
        )
        settings = [TOKEN]
    else:
        cards = '    devices: ["/dev/kfd", "/dev/dri"]\n    group_add: [video]\n'
        cards += "    security_opt: [seccomp=unconfined]\n"
        settings = [TOKEN, f"HIP_VISIBLE_DEVICES={','.join(ids)}"]
    return (
        f"  {name}:\n    image: {server.image}\n{entry}"
        f"    command: {json.dumps(server.args)}\n"
        f'    ports: ["{server.port + place}:{server.port}"]\n'
        "    ipc: host\n"
        "    volumes: [models:/root/.cache/huggingface]\n"
        f"    environment: {json.dumps(settings)}\n"
        f"{cards}"
        "    restart: unless-stopped\n"
    )


def k8s(one: Outcome) -> str:
    """A Deployment of as many replicas, and the Service before them."""
    server = server_of(one)
    resource = RESOURCE[server.vendor]
    entry = f"          command: {json.dumps(server.command)}\n" if server.command else ""
    return f"""\
{server.note}apiVersion: apps/v1
kind: Deployment
metadata:
  name: {server.name}
spec:
  replicas: {one.replicas}
  selector:
    matchLabels: {{app: {server.name}}}
  template:
    metadata:
      labels: {{app: {server.name}}}
    spec:
      containers:
        - name: server
          image: {server.image}
{entry}          args: {json.dumps(server.args)}
          ports: [{{containerPort: {server.port}}}]
          env:
            - name: {TOKEN}
              valueFrom: {{secretKeyRef: {{name: huggingface, key: token, optional: true}}}}
          resources:
            limits: {{{resource}: {server.gpus}}}
          startupProbe:
            httpGet: {{path: {server.health}, port: {server.port}}}
            periodSeconds: 10
            failureThreshold: 180
          readinessProbe:
            httpGet: {{path: {server.health}, port: {server.port}}}
          volumeMounts:
            - {{name: models, mountPath: /root/.cache/huggingface}}
            - {{name: shm, mountPath: /dev/shm}}
      volumes:
        - {{name: models, emptyDir: {{}}}}
        - {{name: shm, emptyDir: {{medium: Memory}}}}
---
apiVersion: v1
kind: Service
metadata:
  name: {server.name}
spec:
  selector: {{app: {server.name}}}
  sessionAffinity: ClientIP
  ports: [{{port: {server.port}, targetPort: {server.port}}}]
"""
