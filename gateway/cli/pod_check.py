"""Asks the hop of each pod what it thinks of the settings that its pod gives it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from gateway.cli.rooms import AskHop, Opinion, ask_hop
from gateway.manifests.pod_configs import Pod
from services.runtime.checks.finding import Finding, Severity, violation, warning
from services.runtime.config import CONFIG_VARIABLE, PREFIX
from services.runtime.environment import SEPARATOR

UNKNOWN_SECRETS = {"key": "unknown", "redis_url": "redis://unknown"}
"""Stands for what comes from a Secret, by the end of its name: that it is there is all that is
known."""
AT_A_TIME = 2
"""How many hops are asked at once; each is a process that has to load its hop."""


class PodHops:
    """Asks the hops of pods, each question once: most pods are configured alike."""

    def __init__(self, ask: AskHop = ask_hop) -> None:
        """Take what asks one hop."""
        self._ask = ask
        self._places = asyncio.Semaphore(AT_A_TIME)
        self._locks: defaultdict[tuple[object, ...], asyncio.Lock] = defaultdict(asyncio.Lock)
        self._told: dict[tuple[object, ...], Opinion] = {}

    async def ask(self, hop: str, environ: Mapping[str, str]) -> Opinion:
        """Return what a hop says of the environment of its pod, which names a configuration."""
        question = _question(hop, environ)
        # One lock a question, so that whoever asks it at the same time waits for the answer.
        async with self._locks[question]:
            if question not in self._told:
                async with self._places:
                    self._told[question] = await self._ask(hop, environ)
            return self._told[question]


def _question(hop: str, environ: Mapping[str, str]) -> tuple[object, ...]:
    """Return what an answer depends on: the hop, its variables, and its file by what is in it."""
    ours = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    text = Path(ours.pop(CONFIG_VARIABLE)).read_text(encoding="utf-8")
    return (hop, text, *sorted(ours.items()))


async def ask_pods(
    pods: Iterable[Pod], environ: Mapping[str, str], known: Opinion, ask: AskHop
) -> tuple[Finding, ...]:
    """Return what the hops find in the settings of their pods.

    Args:
        pods: what runs there; those that cannot be read are passed over.
        environ: the environment of this machine, of which nothing of ours counts.
        known: what has been found already, in the configuration that all of them share.
        ask: asks one hop.
    """
    others = {name: value for name, value in environ.items() if not name.startswith(PREFIX)}
    readable = [pod for pod in pods if pod.config is not None]
    told = await asyncio.gather(*(ask(pod.hop, others | variables(pod)) for pod in readable))
    return tuple(
        finding
        for pod, opinion in zip(readable, told, strict=True)
        for finding in _placed(pod, opinion, known)
    )


def variables(pod: Pod) -> dict[str, str]:
    """Return the variables of ours that the process of a pod has, with its file on this machine."""
    secrets = {
        name: value
        for name in pod.settings.unknown
        for end, value in UNKNOWN_SECRETS.items()
        if SEPARATOR in name and name.lower().endswith(end)
    }
    return {**pod.settings.environ, **secrets, CONFIG_VARIABLE: str(pod.file)}


def _placed(pod: Pod, opinion: Opinion, known: Opinion) -> Iterator[Finding]:
    """Yield what is found, with its place; what a pod shares with all others is told once."""
    for text in opinion.unreadable:
        if text in opinion.missing:
            yield warning("settings-readable", f"{pod.where}, here: {text}")
        elif text not in known.unreadable:
            yield violation("settings-readable", f"{pod.where}: {text}")
    told = {finding.text for finding in known.findings}
    for finding in opinion.findings:
        if finding.text not in told:
            make = violation if finding.severity is Severity.VIOLATION else warning
            yield make("settings-accepted", f"{pod.where}: {finding.text}")
