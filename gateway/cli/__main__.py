"""Is the command `sixhop`: reads the command line and the environment, and runs one verb."""

import os
import sys

try:
    # Importing takes longer than anything else before the first word: Ctrl-C must work here too.
    from importlib import metadata
    from pathlib import Path
    from typing import Annotated, Literal

    import typer

    from gateway.cli.console import tolerate_any_text
    from gateway.cli.k8s_commands import k8s_app
    from gateway.cli.key_commands import key_app
    from gateway.cli.problem import EXIT_INTERRUPTED, EXIT_OK, RefusedError
    from gateway.cli.running import AsJson, Config, Gateway, Work, run
    from services.runtime.clock import MonotonicClock
    from services.runtime.launch import GRPC_EXPERIMENTS
except KeyboardInterrupt:
    sys.stderr.write("sixhop: cancelled\n")
    # EXIT_INTERRUPTED, which may not be imported yet.
    sys.exit(130)

app = typer.Typer(
    name="sixhop",
    no_args_is_help=True,
    invoke_without_command=True,
    add_completion=False,
    rich_markup_mode=None,
    # They print local variables, and some hold keys.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
ENVIRON = dict(os.environ)
"""The environment as it was given; hops inherit this and not what is set below."""
app.add_typer(key_app(ENVIRON), name="key")
app.add_typer(k8s_app(), name="k8s")


@app.callback()
def sixhop(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Run the suite of six hops, and ask it questions."""
    if version:
        typer.echo(metadata.version("sixhop"))
        raise typer.Exit(EXIT_OK)


@app.command()
def up(
    config: Config = None,
    llm: Annotated[
        bool, typer.Option("--llm/--no-llm", help="Start the local model if no provider is set.")
    ] = True,
    logs: Annotated[bool, typer.Option("--logs", help="Show the log lines of all hops.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start every hop, keep them running, stop them on Ctrl-C; SIGHUP reloads their settings."""

    def work() -> Work:
        from gateway.cli import up as verb

        return verb.up(
            ENVIRON,
            MonotonicClock(),
            config_path=config,
            with_llm=llm,
            as_json=as_json,
            show_logs=logs,
        )

    run(work, as_json=as_json)


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="The question; - reads standard input.")],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="A data file, or name:NAME for a dataset of the suite; repeatable."
        ),
    ] = None,
    deadline: Annotated[float, typer.Option(metavar="S", help="Seconds the run may take.")] = 30.0,
    lang: Annotated[
        Literal["", "en", "zh"], typer.Option(help="The answer's language; else the question's.")
    ] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="Who answers; else routing.")] = "",
    delivery: Annotated[
        Literal["restartable", "buffered", "live"],
        typer.Option(help="What may happen to text when its model fails."),
    ] = "restartable",
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where files go; else sixhop-out/RUN."),
    ] = None,
    gateway: Gateway = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Ask a question; show the answer and where the time went."""

    def work() -> Work:
        from gateway.cli import ask as verb

        options = verb.AskOptions(
            text=verb.read_question(question),
            data=data or (),
            deadline_s=deadline,
            language=lang,
            agent=agent,
            delivery=delivery,
            out=out,
            as_json=as_json,
            gateway=gateway,
            config_path=config,
        )
        return verb.ask(ENVIRON, MonotonicClock(), options)

    run(work, as_json=as_json)


@app.command()
def health(
    config: Config = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on showing every change, until Ctrl-C.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask every hop how it does."""

    def work() -> Work:
        if watch:
            from gateway.cli import health_watch

            clock = MonotonicClock()
            return health_watch.watch(ENVIRON, clock, config_path=config, as_json=as_json)
        from gateway.cli import health as verb

        return verb.health(ENVIRON, config_path=config, as_json=as_json)

    run(work, as_json=as_json)


@app.command()
def shed(
    reason: Annotated[str, typer.Option(help="Why, for those who are refused.")] = "",
    length: Annotated[
        str, typer.Option("--for", metavar="LENGTH", help="How long, such as 60s or 5m.")
    ] = "",
    up_to: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="Refuse calls up to this level of criticality only; else all."
        ),
    ] = "",
    end: Annotated[bool, typer.Option("--end", help="End the order that is in force.")] = False,
    gateway: Gateway = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Have the gateway refuse calls at its door for a while."""

    def work() -> Work:
        from gateway.cli import shed as verb

        options = verb.ShedOptions(
            reason=reason,
            length=length,
            up_to=up_to,
            end=end,
            gateway=gateway,
            as_json=as_json,
            config_path=config,
        )
        return verb.shed(ENVIRON, options)

    run(work, as_json=as_json)


@app.command()
def breaker(
    order: Annotated[
        Literal["open", "close", "reset"],
        typer.Argument(help="Refuse every call, let every call pass, or let it decide again."),
    ],
    dependency: Annotated[
        str, typer.Argument(help="The dependency, as `sixhop health` names it, such as tool/sql.")
    ],
    hop: Annotated[str, typer.Option(metavar="HOP", help="The hop whose breaker it is.")],
    length: Annotated[
        str, typer.Option("--for", metavar="LENGTH", help="How long, such as 60s or 5m.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why, for the log of the hop.")] = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Hold a breaker of a hop open or closed for a while, or reset it."""

    def work() -> Work:
        from gateway.cli import breaker as verb

        options = verb.BreakerOptions(
            order=order,
            key=dependency,
            hop=hop,
            length=length,
            reason=reason,
            as_json=as_json,
            config_path=config,
        )
        return verb.breaker(ENVIRON, options)

    run(work, as_json=as_json)


@app.command()
def check(
    config: Config = None,
    k8s: Annotated[
        Path | None,
        typer.Option(
            "--k8s",
            metavar="DIR",
            help="Compare Kubernetes and Istio manifests with it: a folder, a file, or -.",
        ),
    ] = None,
    observed: Annotated[
        bool, typer.Option("--observed", help="Compare timeouts with what running hops measure.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print every setting, with its meaning, as TOML.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check the configuration; show what each hop gets of a deadline."""

    def work() -> Work:
        from gateway.cli import check as verb
        from gateway.cli import reference

        if print_config:
            return reference.print_config(ENVIRON, config)
        if observed and k8s is not None:
            raise RefusedError("--observed asks running hops, and --k8s reads files; take one")
        options = verb.CheckOptions(
            config_path=config, as_json=as_json, manifests=k8s, observed=observed
        )
        return verb.check(ENVIRON, options)

    run(work, as_json=as_json)


@app.command()
def plan(
    qps: Annotated[
        float | None, typer.Option(help="Runs that come per second, on average over the day.")
    ] = None,
    peak: Annotated[
        float | None, typer.Option(help="How many times as many at the peak; else 1.")
    ] = None,
    p50: Annotated[
        float | None, typer.Option(metavar="S", help="The provider's median, seconds; else 2.")
    ] = None,
    p99: Annotated[
        float | None, typer.Option(metavar="S", help="Its 99th percentile; else three times p50.")
    ] = None,
    chunks: Annotated[
        float | None, typer.Option(help="Pieces of text of one answer; else 24.")
    ] = None,
    utilisation: Annotated[
        float | None, typer.Option(help="The part of permits that may be in use; else 0.8.")
    ] = None,
    traffic: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="More of it as TOML, such as calls and CPU of each tier."
        ),
    ] = None,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Say what a traffic takes: pods, permits, ejection and stores."""

    def work() -> Work:
        from gateway.cli import plan as verb

        options = verb.PlanOptions(
            qps=qps,
            peak_factor=peak,
            p50_s=p50,
            p99_s=p99,
            chunks=chunks,
            utilisation=utilisation,
            traffic_path=traffic,
            config_path=config,
            as_json=as_json,
        )
        return verb.plan(ENVIRON, options)

    run(work, as_json=as_json)


@app.command("model-sim")
def model_sim(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    host: Annotated[str, typer.Option(help="The address to listen on; else 127.0.0.1.")] = "",
    seed: Annotated[int | None, typer.Option(help="What all chance comes from.")] = None,
    script: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A timeline of faults, as TOML.")
    ] = None,
    fault: Annotated[
        list[str] | None,
        typer.Option(metavar="RULE", help="A fault for all, such as 503?p=0.1; repeatable."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of [sim]; repeatable."),
    ] = None,
    list_faults: Annotated[
        bool, typer.Option("--list-faults", help="Print every fault and its knobs.")
    ] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Run a simulated model provider that fails as it is told, until Ctrl-C."""

    def work() -> Work:
        from gateway.cli import model_sim as verb

        if list_faults:
            return verb.list_faults(ENVIRON)
        options = verb.SimOptions(
            host=host,
            port=port,
            seed=seed,
            script=script,
            faults=fault or (),
            settings=setting or (),
            config_path=config,
            as_json=as_json,
        )
        return verb.model_sim(ENVIRON, options)

    run(work, as_json=as_json)


@app.command()
def demo(
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where files go; else sixhop-out.")
    ] = None,
) -> None:
    """Start a suite of its own, ask it three questions, stop it."""

    def work() -> Work:
        from gateway.cli import demo as verb

        return verb.demo(ENVIRON, MonotonicClock(), out=out)

    run(work, as_json=False)


def main() -> None:
    """Run the command line."""
    # Before grpc is imported: it reads the environment once, and logs what is no news here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    os.environ.setdefault("GRPC_EXPERIMENTS", GRPC_EXPERIMENTS)
    try:
        tolerate_any_text()
        app()
    except SystemExit as end:
        # The library hears Ctrl-C while it reads the command line, and says nothing.
        cause = end.__context__.__cause__ if end.__context__ is not None else None
        if isinstance(cause, KeyboardInterrupt):
            sys.stderr.write("sixhop: cancelled\n")
        raise
    except KeyboardInterrupt:
        sys.stderr.write("sixhop: cancelled\n")
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
