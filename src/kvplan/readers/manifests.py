"""A compose file or a Kubernetes manifest to the engines that its containers start.

A container is any mapping with an image, a command or arguments, wherever it is: in a service of
compose, in a Pod, a Deployment, a LeaderWorkerSet, an InferenceService or a List.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kvplan.core.errors import BadFile, BadValue
from kvplan.readers.command_line import KNOWN_HINT, Invocation, invocation_in, the_one
from kvplan.readers.shell import expand, read_commands
from kvplan.readers.yaml_text import read_yaml

_REFERENCE = re.compile(r"\$\(([A-Za-z_]\w*)\)")  # of Kubernetes, in command and args


class Container(NamedTuple):
    """What a container runs, its variables put in."""

    name: str
    image: str
    entrypoint: tuple[str, ...]
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def read_manifest(data: bytes, what: str, name: str = "") -> Invocation:
    """The one engine that a manifest starts, or that its container ``name`` does.

    Raises:
        BadFile: no manifest.
        BadValue: no container of it starts an engine, or several do.
    """
    containers = list(containers_of(read_yaml(data, what)))
    if not containers:
        raise BadFile(f"{what} has no container: nothing with an image, a command or arguments.")
    found = [
        invocation
        for container in containers
        if name in ("", container.name) and (invocation := _invocation(container))
    ]
    if not found:
        names = ", ".join(container.name for container in containers[:8])
        asked = f"The container {name!r} of {what}" if name else f"No container of {what}"
        says = "is not there or starts no engine" if name else "starts an engine that is known"
        raise BadValue(f"{asked} {says}; its containers: {names}.", KNOWN_HINT)
    return the_one(found)


def _invocation(container: Container) -> Invocation | None:
    return invocation_in(
        container.image,
        container.entrypoint,
        list(container.arguments),
        container.environment,
        container.name,
    )


def containers_of(documents: list[Any]) -> Iterator[Container]:
    """Every container, in the order of the text."""
    waiting: list[tuple[str, Any]] = [("", document) for document in reversed(documents)]
    while waiting:
        key, node = waiting.pop()
        if isinstance(node, list):
            waiting += [(key, item) for item in reversed(node)]
        elif isinstance(node, dict):
            if _is_container(node):
                yield _container(key, node)
            waiting += [item for item in reversed(node.items()) if item[0] not in _OWN]


_OWN = ("image", "command", "args", "entrypoint", "env", "environment")


def _is_container(node: Mapping[str, Any]) -> bool:
    runs = any(isinstance(node.get(key), (list, str)) for key in ("command", "args", "entrypoint"))
    return runs or isinstance(node.get("image"), str)


def _container(key: str, node: Mapping[str, Any]) -> Container:
    """Compose's ``entrypoint`` and ``command`` are Kubernetes' ``command`` and ``args``."""
    environment = {**_variables(node.get("env")), **_variables(node.get("environment"))}
    composed = "entrypoint" in node or "environment" in node or "args" not in node
    composed = composed and "env" not in node and not isinstance(node.get("name"), str)
    first, second = ("entrypoint", "command") if composed else ("command", "args")
    name = node.get("name") if isinstance(node.get("name"), str) else node.get("container_name")
    return Container(
        name=str(name) if isinstance(name, str) else key,
        image=expand(_text(node.get("image")), {}),
        entrypoint=_words(node.get(first), environment, composed),
        arguments=_words(node.get(second), environment, composed),
        environment=environment,
    )


def _words(value: Any, environment: Mapping[str, str], composed: bool) -> tuple[str, ...]:
    """A list as it is, a text cut as a shell would; variables of the right kind put in."""
    if isinstance(value, str):
        commands = read_commands(value.replace("$$", "$"), environment if composed else None)
        return commands[0].words if commands else ()
    words = (
        [item for item in value or () if isinstance(item, str)] if isinstance(value, list) else []
    )
    if composed:
        return tuple(expand(word, {}).replace("$$", "$") for word in words)
    return tuple(
        _REFERENCE.sub(lambda match: environment.get(match[1], match[0]), word) for word in words
    )


def _variables(value: Any) -> dict[str, str]:
    """``NAME: value``, ``- NAME=value``, or Kubernetes' ``- name: …, value: …``."""
    if isinstance(value, dict):
        return {key: expand(_text(text), {}) for key, text in value.items()}
    found = {}
    for item in value if isinstance(value, list) else ():
        if isinstance(item, str):
            key, _, text = item.partition("=")
            found[key] = expand(text, {})
        elif isinstance(item, dict) and isinstance(item.get("value"), str):
            found[_text(item.get("name"))] = item["value"]
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
