"""An engine's own command line, as it is pasted: which engine, its words, its environment.

    VLLM_LOGGING_LEVEL=INFO vllm serve Qwen/Qwen3-32B -tp 2
    docker run --gpus all -e HF_TOKEN=… vllm/vllm-openai:v0.11.0 --model Qwen/Qwen3-32B -tp 2
    bash -c "exec python -m sglang.launch_server --model-path …"

The words are told apart by ``kvplan.engines.arguments``; nothing is run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from kvplan.core.errors import BadValue
from kvplan.readers.shell import read_commands

# A program, the word that has to follow it (none: any), and the engine that both start.
PROGRAMS: Mapping[str, Mapping[str, str]] = {
    "vllm": {"serve": "vllm"},
    "api_server.py": {"": "vllm"},
    "sglang": {"serve": "sglang"},
    "launch_server.py": {"": "sglang"},
    "trtllm-serve": {"serve": "tensorrt-llm", "": "tensorrt-llm"},
    "llama-server": {"": "llama.cpp"},
    "llama-cli": {"": "llama.cpp"},
    "ollama": {"run": "ollama", "serve": "ollama"},
}
MODULES: Mapping[str, str] = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "sglang.launch_server": "sglang",
    "tensorrt_llm.commands.serve": "tensorrt-llm",
}
KNOWN = (
    "vllm serve, python -m vllm.entrypoints.openai.api_server, python -m sglang.launch_server, "
    "sglang serve, trtllm-serve, llama-server, llama-cli, ollama, docker run with one of them, "
    "a compose file, a Kubernetes manifest"
)
SHELLS = ("sh", "bash", "zsh", "dash", "ash")
CONTAINERS = ("docker", "podman", "nerdctl")
MOST_SHELLS = 4  # shells in shells

# Options of ``docker run`` that take no value; every other one takes one.
DOCKER_SWITCHES = {
    "-d", "-i", "-t", "-P", "-q", "--detach", "--interactive", "--tty", "--rm", "--init",
    "--privileged", "--read-only", "--quiet", "--publish-all", "--no-healthcheck",
    "--oom-kill-disable", "--sig-proxy", "--disable-content-trust",
}  # fmt: skip
_SHORT_SWITCHES = re.compile(r"-[ditPq]+")


class Image(NamedTuple):
    """A container's image by a part of its name; ``starts`` where it runs the engine by itself."""

    pattern: re.Pattern[str]
    engine: str
    starts: bool


IMAGES = (
    Image(re.compile(r"vllm-(openai|cpu|tpu|xpu|rocm|arm64)|(^|/)vllm(:|@|$)"), "vllm", True),
    Image(re.compile(r"sglang"), "sglang", False),
    Image(re.compile(r"llama\.cpp|llama-cpp"), "llama.cpp", True),
    Image(re.compile(r"ollama"), "ollama", True),
    Image(re.compile(r"tensorrt-?llm"), "tensorrt-llm", False),
)
# A release before 20: what is later is a calendar's (25.09-py3).
_RELEASE = re.compile(
    r"\bv?((?:1?\d)\.\d+(?:\.\d+)*(?:\.?(?:post|rc|dev)\d+)?)(?![\w.])|\b(b\d{3,5})\b"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One start of an engine: its words after the program, and what its environment says.

    ``version`` is that of the container's image, where its tag names one; ``name`` the container's.
    """

    engine: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    version: str | None = None
    name: str = ""

    @property
    def shown(self) -> str:
        """A short form for messages."""
        start = " ".join(self.words)
        start = start if len(start) <= 60 else f"{start[:60]}…"
        return f"{self.name}: {self.engine} {start}" if self.name else f"{self.engine} {start}"


def read_command_line(text: str) -> Invocation:
    """The one start of an engine in a text.

    Raises:
        BadValue: none, several, or a text that is no command line.
    """
    found = [
        invocation
        for command in read_commands(text)
        if (invocation := invocation_of(command.words, command.variables))
    ]
    if not found:
        raise BadValue(f"--from starts no engine that is known: {text.strip()[:80]!r}.", KNOWN_HINT)
    return the_one(found)


KNOWN_HINT = f"Known: {KNOWN}."


def the_one(found: Sequence[Invocation]) -> Invocation:
    """The only start there is.

    Raises:
        BadValue: there are several that differ; they are listed.
    """
    if any(other != found[0] for other in found[1:]):
        listed = "; ".join(invocation.shown for invocation in found[:8])
        raise BadValue(
            f"--from starts {len(found)} engines: {listed}.",
            "Give the command of one; of a file's container: FILE#NAME.",
        )
    return found[0]


def invocation_of(
    words: Sequence[str], environment: Mapping[str, str], shells: int = 0
) -> Invocation | None:
    """The engine that a command starts, through containers and shells; None where it is none."""
    contained = _in_docker(words)
    if contained is not None:
        return contained
    for place, word in enumerate(words):
        name = _base(word)
        if name in SHELLS and shells < MOST_SHELLS:
            inner = _in_shell(words[place + 1 :], environment, shells + 1)
            if inner is not None:
                return inner
        after = words[place + 1] if place + 1 < len(words) else ""
        if word == "-m" and after in MODULES:
            return _started(MODULES[after], words[place + 2 :], environment)
        programs = PROGRAMS.get(name, {})
        if after and after in programs:
            return _started(programs[after], words[place + 2 :], environment)
        if "" in programs:
            return _started(programs[""], words[place + 1 :], environment)
    return None


def _started(engine: str, words: Sequence[str], environment: Mapping[str, str]) -> Invocation:
    return Invocation(engine=engine, words=tuple(words), environment=dict(environment))


def _base(word: str) -> str:
    return word.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".exe")


def _in_shell(
    words: Sequence[str], environment: Mapping[str, str], shells: int
) -> Invocation | None:
    """``-c TEXT``, ``-lc TEXT``, and the same with its text cut into words."""
    for place, word in enumerate(words[:-1]):
        if not word.startswith("-"):
            return None
        if not word.startswith("--") and word.endswith("c"):
            for command in read_commands(words[place + 1], environment):
                found = invocation_of(command.words, command.variables, shells)
                if found is not None:
                    return found
    return None


def _in_docker(words: Sequence[str]) -> Invocation | None:
    """``docker run [options] IMAGE [command]``."""
    for place, word in enumerate(words):
        if _base(word) in CONTAINERS and "run" in words[place + 1 : place + 3]:
            start = words.index("run", place + 1) + 1
            return _docker_run(words[start:])
    return None


def _docker_run(words: Sequence[str]) -> Invocation | None:
    environment: dict[str, str] = {}
    entrypoint: tuple[str, ...] = ()
    name, place = "", 0
    while place < len(words) and words[place].startswith("-"):
        option, equals, value = words[place].partition("=")
        if option in DOCKER_SWITCHES or _SHORT_SWITCHES.fullmatch(option):
            place += 1
            continue
        if not option.startswith("--") and len(words[place]) > 2:  # -eNAME=value
            option, value, place = words[place][:2], words[place][2:], place + 1
        elif equals:
            place += 1
        else:
            value = words[place + 1] if place + 1 < len(words) else ""
            place += 2
        if option in ("-e", "--env"):
            key, _, text = value.partition("=")
            environment[key] = text
        elif option == "--entrypoint":
            entrypoint = (value,) if value else ()
        elif option == "--name":
            name = value
    if place >= len(words):
        return None
    return invocation_in(words[place], entrypoint, words[place + 1 :], environment, name)


def invocation_in(
    image: str,
    entrypoint: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    name: str,
) -> Invocation | None:
    """The engine of a container: what its command starts, else what its image does."""
    known = next((row for row in IMAGES if row.pattern.search(image)), None)
    found = invocation_of([*entrypoint, *arguments], environment)
    if found is None and known is not None and known.starts and not entrypoint:
        words = arguments[1:] if list(arguments[:1]) == ["serve"] else arguments
        found = _started(known.engine, words, environment)
    if found is None:
        return None
    version = _version_of(image) if known is not None and known.engine == found.engine else None
    return replace(found, version=version, name=name)


def _version_of(image: str) -> str | None:
    """The release that a tag names: ``v0.11.0``, ``v0.5.3-cu126``, ``server-cuda-b6123``."""
    tag = image.partition("@")[0].rsplit("/", 1)[-1].partition(":")[2]
    match = _RELEASE.search(tag)
    return None if match is None else match[1] or match[2]
