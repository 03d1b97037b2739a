"""Checks the whole configuration and shows what each hop gets: the verb `check`."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway.access.examination import examine
from gateway.cli.check_report import Report, document, show
from gateway.cli.console import open_console, until_reader_leaves, write_json
from gateway.cli.hop_health import SILENT, UNREACHABLE
from gateway.cli.observed import Proposal, observe
from gateway.cli.parts import naming, plan_problems
from gateway.cli.pod_check import PodHops, ask_pods
from gateway.cli.problem import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from gateway.cli.rooms import AskHop, AskRooms, Opinion, ask_rooms, merged
from gateway.manifests.checking import check_manifests
from gateway.manifests.cluster import sort_out
from gateway.manifests.documents import read_manifests
from gateway.manifests.embedded import embedded_in, write_out
from gateway.manifests.pod_configs import read_pods
from services.runtime.checks.finding import Finding, violation, warning
from services.runtime.config import PREFIX, Config, ConfigError, load_config
from services.runtime.ladder import findings, violations
from services.runtime.sections import MissingFileError
from services.runtime.topology import GATEWAY


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """Says what to check, and how to tell."""

    config_path: Path | None = None
    """The configuration; None looks where every hop looks."""
    as_json: bool = False
    manifests: Path | None = None
    """Kubernetes and Istio manifests to compare with it: a folder, a file, or `-`."""
    observed: bool = False
    """Whether to compare it with what running hops measure."""


async def check(environ: Mapping[str, str], options: CheckOptions) -> int:
    """Show the ladder, the sizes, and everything that is wrong.

    Returns:
        0 when nothing contradicts itself, 1 when something does, 2 when it cannot be read.
    """
    found = await report(environ, options)
    with until_reader_leaves():
        if options.as_json:
            write_json(sys.stdout, document(found))
        else:
            show(open_console(sys.stdout), found)
    if found.opinion.unreadable:
        return EXIT_USAGE
    return EXIT_FAILED if violations(found.opinion.findings) else EXIT_OK


async def report(
    environ: Mapping[str, str],
    options: CheckOptions,
    ask: AskRooms = ask_rooms,
    ask_one: AskHop | None = None,
) -> Report:
    """Return all that is found.

    Args:
        environ: the environment that the hops would have.
        options: what to check.
        ask: asks the rooms about the configuration that an environment names.
        ask_one: asks one hop, with the environment of its pod; without it each question is asked
            once.
    """
    if options.observed:
        named = await _checked(environ, options.config_path, ask)
        return await _with_observed(named, naming(environ, options.config_path), ask)
    if options.manifests is None:
        return await _checked(environ, options.config_path, ask)
    ask_pod = ask_one or PodHops().ask
    return await _with_manifests(environ, options.config_path, options.manifests, ask, ask_pod)


async def _with_manifests(
    environ: Mapping[str, str], named: Path | None, manifests: Path, ask: AskRooms, ask_one: AskHop
) -> Report:
    reading = read_manifests(manifests)
    embedded = embedded_in(reading.documents)
    with TemporaryDirectory(prefix="sixhop-check-") as name:
        folder = Path(name)
        if named is not None or not embedded:
            found = await _checked(environ, named, ask)
            named = named or _source(found)
        else:
            # As a pod has it: the variables of this machine are not there.
            environ = {k: v for k, v in environ.items() if not k.startswith(PREFIX)}
            # Of several the first is taken; that they differ is a finding.
            first = embedded[0]
            path = write_out(first, folder)
            found = _as_embedded(await _checked(environ, path, ask), first.where)
        if found.config is None or found.opinion.unreadable:
            opinion = merged([found.opinion, Opinion(reading.unreadable)])
            return replace(found, opinion=opinion)
        cluster = sort_out(reading.documents)
        pods = read_pods(cluster, named, folder)
        told = check_manifests(reading, cluster, pods, found.config)
        asked = await ask_pods(pods, environ, found.opinion, ask_one)
    told = replace(told, findings=tuple(dict.fromkeys((*told.findings, *asked))))
    opinion = merged([found.opinion, Opinion(told.unreadable, told.findings)])
    return replace(found, opinion=opinion, manifests=told)


def _source(found: Report) -> Path | None:
    return Path(found.config.source) if found.config is not None and found.config.source else None


async def _checked(environ: Mapping[str, str], path: Path | None, ask: AskRooms) -> Report:
    config, own = own_opinion(environ, path)
    if config is None:
        return Report(config=None, opinion=own)
    rooms = await ask(naming(environ, path))
    return Report(config=config, opinion=merged([own, rooms]))


def _as_embedded(found: Report, where: str) -> Report:
    """Return the report of a configuration that is meant for another machine than this."""
    opinion = found.opinion
    unreadable = _placed((t for t in opinion.unreadable if t not in opinion.missing), where)
    elsewhere = tuple(
        warning("settings-readable", f"{where}, here: {text}") for text in opinion.missing
    )
    opinion = Opinion(unreadable, (*opinion.findings, *elsewhere))
    if found.config is None:
        return replace(found, opinion=opinion)
    return replace(found, config=replace(found.config, source=where), opinion=opinion)


async def _with_observed(found: Report, environ: Mapping[str, str], ask: AskRooms) -> Report:
    config = found.config
    if config is None or found.opinion.unreadable:
        return found
    observed = await observe(config)
    if all(state in (UNREACHABLE, SILENT) for _, state in observed.hops):
        nobody = f"no hop answers, the gateway at {config.address(GATEWAY)} neither; sixhop up"
        opinion = merged([found.opinion, Opinion((f"{nobody} starts them",))])
        return replace(found, opinion=opinion)
    proposals = [await bearable(each, found, environ, ask) for each in observed.proposals]
    return replace(found, observed=replace(observed, proposals=tuple(proposals)))


async def bearable(
    proposal: Proposal, found: Report, environ: Mapping[str, str], ask: AskRooms
) -> Proposal:
    """Return a proposal, or that nothing is to be changed when a room could not bear it."""
    if not proposal.changes or proposal.own:
        return proposal
    variable = PREFIX + proposal.setting.replace(".", "__").upper()
    opinion = await ask({**environ, variable: f"{proposal.proposed_s:g}"})
    known = set(violations(found.opinion.findings))
    worse = [text for text in violations(opinion.findings) if text not in known]
    if not worse:
        return proposal
    because = f"{proposal.because}; {proposal.proposed_s:g} s would not do: {worse[0]}"
    return replace(proposal, proposed_s=proposal.declared_s, because=because)


def _placed(texts: Iterable[str], where: str) -> tuple[str, ...]:
    return tuple(f"{where}: {text}" for text in texts)


def own_opinion(environ: Mapping[str, str], path: Path | None) -> tuple[Config | None, Opinion]:
    """Return the configuration, if it can be read at all, and what is found without the rooms."""
    try:
        config = load_config(path, environ)
    except ConfigError as error:
        return None, Opinion((str(error),))
    unreadable: list[str] = []
    missing: list[str] = []
    found: list[Finding] = []
    for find in (findings, _gateway_findings):
        try:
            found += find(config)
        except ConfigError as error:
            unreadable.append(str(error))
            if isinstance(error, MissingFileError):
                missing.append(str(error))
    return config, Opinion(tuple(unreadable), tuple(found), tuple(missing))


def _gateway_findings(config: Config) -> list[Finding]:
    found = examine(config)
    config.operator.secret()
    return [*found, *(violation("parts", text) for text in plan_problems(config))]
