"""Asks one question as a client process of its own, so that a test can kill it.

`python -m tests.e2e.asking ADDRESS AGENT RUN_ID` prints the kind of each event as it comes.
"""

import asyncio
import sys

import grpc

from sixhop.gateway.v1 import gateway_pb2
from sixhop.gateway.v1.gateway_pb2_grpc import GatewayServiceStub
from sixhop.type.v1 import run_pb2


async def main(address: str, agent: str, run_id: str) -> None:
    """Ask, and print what happens."""
    async with grpc.aio.insecure_channel(address) as channel:
        request = gateway_pb2.RunRequest(question=run_pb2.Question(text="Go."), agent=agent)
        call = GatewayServiceStub(channel).Run(
            request, timeout=30, metadata=(("x-sixhop-run-id", run_id),)
        )
        async for response in call:
            sys.stdout.write(f"{response.event.WhichOneof('event')}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
