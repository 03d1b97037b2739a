"""Asks one question and shows the way to its answer: the verb `ask`."""

import math
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from gateway.cli.address import gateway_address
from gateway.cli.artefacts import DEFAULT_FOLDER, require_folder, safe_name, save
from gateway.cli.client import GatewayClient
from gateway.cli.console import open_console, size_text, until_reader_leaves, write_json
from gateway.cli.data_files import read_data_files
from gateway.cli.events import Accepted, Question
from gateway.cli.failure import Failure, RunFailedError
from gateway.cli.parts import read_config
from gateway.cli.problem import EXIT_OK, RefusedError
from gateway.cli.progress import LiveProgress, PlainProgress, Progress, SilentProgress
from gateway.cli.transcript import Transcript
from gateway.cli.view import Result, show_answer, show_failure, to_document
from gateway.cli.waterfall import own_report, tree
from services.runtime.clock import Clock
from services.runtime.environment import API_KEY_VARIABLE
from services.runtime.errors import Code
from services.runtime.language import language_of

STANDARD_INPUT = "-"
MAX_INPUT_BYTES = 16 * 1024 * 1024
MAX_DEADLINE_S = 86_400.0
"""Only keeps out what is no length of time; the gateway has its own maximum."""
CUT_S = 0.5
"""So much less than is left was taken away by the gateway's maximum, not by clocks and rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskOptions:
    """Is what the command line of `ask` says."""

    text: str
    """The question."""
    data: Sequence[str] = ()
    deadline_s: float = 30.0
    """How long the run may take; what a person waits for a report."""
    language: str = ""
    agent: str = ""
    delivery: str = ""
    """`restartable`, `buffered` or `live`; empty leaves it to the gateway."""
    out: Path | None = None
    """Where files are written; None makes a folder for each run."""
    as_json: bool = False
    gateway: str = ""
    """`host:port` of the gateway; empty takes the configuration's."""
    config_path: Path | None = None


def read_question(text: str) -> str:
    """Return the question that the command line means; `-` reads standard input.

    Not part of `ask`: a loop that waits for a person would not hear Ctrl-C.

    Raises:
        RefusedError: it is too long to be sent, or no text.
    """
    if text == STANDARD_INPUT:
        content = sys.stdin.buffer.read(MAX_INPUT_BYTES + 1)
        if len(content) > MAX_INPUT_BYTES:
            raise RefusedError(
                f"the question has more than {size_text(MAX_INPUT_BYTES)}; put text into a file"
            )
    else:
        content = text.encode("utf-8", "surrogateescape")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("the question is not valid UTF-8; write it in UTF-8") from None


async def ask(environ: Mapping[str, str], clock: Clock, options: AskOptions) -> int:
    """Ask, show, save; return the exit code.

    Raises:
        RefusedError: an option or a file is wrong; nothing was sent.
    """
    _check_deadline(options.deadline_s)
    question = Question(
        text=options.text,
        language=options.language,
        agent=options.agent,
        delivery=options.delivery,
        data=read_data_files(options.data),
    )
    address = gateway_address(options.gateway, lambda: read_config(environ, options.config_path))
    if options.out is not None:
        require_folder(options.out)
    async with GatewayClient(address, _api_key(environ)) as client:
        result = await run_question(
            client, question, options.deadline_s, _progress(clock, as_json=options.as_json), clock
        )
    if result.failure is None:
        save_files(result, options.out)
    # What was asked has been answered or not by now, whoever reads it.
    with until_reader_leaves():
        _show(result, as_json=options.as_json)
    return EXIT_OK if result.failure is None else result.failure.exit_code


def _api_key(environ: Mapping[str, str]) -> str:
    key = environ.get(API_KEY_VARIABLE, "").strip()
    if not all("!" <= character <= "~" for character in key):
        # Not shown: it may be a key with one wrong character.
        raise RefusedError(
            f"{API_KEY_VARIABLE} is no key; set it to what `sixhop key create` shows"
        )
    return key


async def run_question(
    client: GatewayClient,
    question: Question,
    deadline_s: float,
    progress: Progress,
    clock: Clock,
) -> Result:
    """Run a question to its end, good or bad, and return what came of it."""
    transcript = Transcript(language=question.language or language_of(question.text))
    failure: Failure | None = None
    began = clock.now()
    with progress.showing(transcript):
        try:
            async with aclosing(client.run(question, deadline_s)) as events:
                async for event in events:
                    transcript.apply(event)
                    if isinstance(event, Accepted):
                        transcript.asked_s = cut_from(deadline_s, event, clock.now() - began)
                    progress.told(event, transcript)
        except RunFailedError as error:
            failure = error.failure
    elapsed_s = clock.now() - began
    given_s = transcript.budget_s if transcript.asked_s else deadline_s
    outcome = Code.OK.name if failure is None else f"{failure.code}/{failure.reason}"
    return Result(
        transcript=transcript,
        deadline_s=given_s,
        elapsed_s=elapsed_s,
        failure=failure,
        root=tree(own_report(given_s, elapsed_s, outcome), client.reports),
    )


def cut_from(deadline_s: float, accepted: Accepted, elapsed_s: float) -> float:
    """Return the asked deadline when the gateway gave less than was left of it, else 0."""
    return deadline_s if accepted.budget_s < deadline_s - elapsed_s - CUT_S else 0.0


def save_files(result: Result, out: Path | None) -> None:
    """Save the files of an answer, and note where they are.

    Raises:
        FailedError: a file cannot be written.
    """
    transcript = result.transcript
    if transcript.finished is not None:
        folder = out or DEFAULT_FOLDER / safe_name(transcript.run_id)
        result.files = save(transcript.finished.artefacts, folder)


def _show(result: Result, *, as_json: bool) -> None:
    if as_json:
        write_json(sys.stdout, to_document(result))
    elif result.failure is None:
        show_answer(open_console(sys.stdout), result)
    else:
        show_failure(open_console(sys.stderr), result)


def _progress(clock: Clock, *, as_json: bool) -> Progress:
    if as_json:
        return SilentProgress()
    # Not where the answer goes: that may be a file.
    console = open_console(sys.stderr)
    return LiveProgress(console, clock) if console.is_terminal else PlainProgress(console)


def _check_deadline(deadline_s: float) -> None:
    if not 0 < deadline_s <= MAX_DEADLINE_S or math.isnan(deadline_s):
        raise RefusedError(
            f"--deadline {deadline_s:g}: write seconds, more than 0 and at most "
            f"{MAX_DEADLINE_S:.0f}; the gateway cuts it to its deadline.max_deadline_s"
        )
