"""Runs the table against real sidecars: `python -m tests.e2e.mesh --runs 5`."""

import argparse
import asyncio
import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.e2e.mesh.calls import clients_of
from tests.e2e.mesh.cases import CASES, SETTINGS, run
from tests.e2e.mesh.house import House, running_house
from tests.e2e.mesh.manifests import production


async def play(house: House, run_count: int, chosen: str) -> int:
    """Run every case so many times, and print what came of it; return how many runs failed."""
    failed = 0
    async with clients_of(house.door) as clients:
        for name, case in CASES.items():
            if chosen not in name:
                continue
            for number in range(1, run_count + 1):
                began = time.monotonic()
                try:
                    said = str(await run(case, house, clients))
                except Exception:
                    failed += 1
                    said = f"FAILED {traceback.format_exc(limit=-2)}"
                took_s = time.monotonic() - began
                sys.stdout.write(f"{name} {number}: {said} ({took_s:.1f} s)\n")
                sys.stdout.flush()
    return failed


def main() -> int:
    """Return 0 when all runs were as they must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="how often each case is run")
    parser.add_argument("--case", default="", help="a part of the name of those to run")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        with running_house(Path(folder), production(), SETTINGS) as house:
            failed = asyncio.run(play(house, options.runs, options.case))
    sys.stdout.write(f"{failed} runs failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
