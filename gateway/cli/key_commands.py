"""Reads the command lines of `sixhop key`."""

from collections.abc import Mapping
from typing import Annotated

import typer

from gateway.cli.running import AsJson, Config, Work, run
from services.runtime.clock import MonotonicClock

HELP = "Make, list and revoke the API keys of tenants."


def key_app(environ: Mapping[str, str]) -> typer.Typer:
    """Return the commands, which read the configuration that an environment names."""
    app = typer.Typer(help=HELP, no_args_is_help=True, rich_markup_mode=None)
    clock = MonotonicClock()

    @app.command()
    def create(
        tenant: Annotated[str, typer.Option(metavar="NAME", help="Whose runs they will be.")],
        name: Annotated[str, typer.Option(help="What its owner calls it, such as ci.")] = "",
        expires: Annotated[
            str, typer.Option(metavar="LENGTH", help="How long it is good, such as 90d; else ever.")
        ] = "",
        config: Config = None,
        as_json: AsJson = False,
    ) -> None:
        """Make a key and show it, for the only time."""

        def work() -> Work:
            # The verb brings half a second of imports, which other verbs need not wait for.
            from gateway.cli import key as verbs

            options = verbs.KeyOptions(config_path=config, as_json=as_json)
            return verbs.create(environ, clock, options, tenant=tenant, name=name, expires=expires)

        run(work, as_json=as_json)

    @app.command("list")
    def list_keys(config: Config = None, as_json: AsJson = False) -> None:
        """Show all keys, without what opens the door."""

        def work() -> Work:
            # As above.
            from gateway.cli import key as verbs

            options = verbs.KeyOptions(config_path=config, as_json=as_json)
            return verbs.list_keys(environ, clock, options)

        run(work, as_json=as_json)

    @app.command()
    def revoke(
        key_id: Annotated[str, typer.Argument(metavar="ID", help="The id, which `list` shows.")],
        config: Config = None,
        as_json: AsJson = False,
    ) -> None:
        """Have a key let nobody in any more; the gateway hears of it within a second."""

        def work() -> Work:
            # As above.
            from gateway.cli import key as verbs

            options = verbs.KeyOptions(config_path=config, as_json=as_json)
            return verbs.revoke(environ, clock, options, key_id=key_id)

        run(work, as_json=as_json)

    return app
