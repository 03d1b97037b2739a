"""Runs the scriptable provider as a process of its own, until SIGTERM or SIGINT."""

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path

from tests.provider.behaviour import Script
from tests.provider.server import serving


async def main(port: int, script: Script) -> None:
    """Serve, and tell the port on standard output."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with serving(script, port=port) as provider:
        told = json.dumps({"port": provider.port, "base_url": provider.base_url})
        sys.stdout.write(f"{told}\n")
        sys.stdout.flush()
        await stop.wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--script", default="{}", help="JSON, or the path of a JSON file")
    arguments = parser.parse_args()
    text: str = arguments.script
    if not text.lstrip().startswith("{"):
        text = Path(text).read_text(encoding="utf-8")
    asyncio.run(main(arguments.port, Script.from_json(text)))
