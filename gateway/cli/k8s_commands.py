"""Reads the command lines of `sixhop k8s`."""

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.running import Work, run

HELP = "Write what of the Kubernetes manifests follows from the configuration."


def k8s_app() -> typer.Typer:
    """Return the commands."""
    app = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)

    @app.callback()
    def k8s() -> None:
        """Without it the only command would be the whole, and have no name."""

    @app.command()
    def render(
        output: Annotated[
            Path, typer.Option(metavar="DIR", help="The folder of the manifests.")
        ] = Path("k8s"),
        config: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="The configuration; else base/sixhop.toml there."),
        ] = None,
        check: Annotated[
            bool, typer.Option("--check", help="Write nothing; show what differs, and exit 1.")
        ] = False,
    ) -> None:
        """Write the files named generated, after a change of the configuration or the graph."""

        def work() -> Work:
            # The verb brings half a second of imports, which other verbs need not wait for.
            from gateway.cli import k8s as verb

            return verb.render(output, config, check_only=check)

        run(work, as_json=False)

    return app
