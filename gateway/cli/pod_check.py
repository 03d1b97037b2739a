"""Asks the hop of each pod what it thinks of the settings that its pod gives it."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from gateway.cli.rooms import AskHop, Opinion
from gateway.manifests.pod_configs import Pod
from services.runtime.checks.finding import Finding, Severity, violation, warning
from services.runtime.config import CONFIG_VARIABLE, PREFIX
from services.runtime.environment import SEPARATOR
from services.runtime.setting_text import SECRET_ENDS

UNKNOWN_SECRET = "unknown"
"""Stands for a key that comes from a Secret: that there is one is all that is known."""


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
        name: UNKNOWN_SECRET
        for name in pod.settings.unknown
        if SEPARATOR in name and name.lower().endswith(SECRET_ENDS)
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
