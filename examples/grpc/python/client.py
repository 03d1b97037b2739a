"""Asks a sixhop suite one question: first for the whole answer, then for the run as it happens."""

import os
import sys

import grpc
from google.rpc import error_details_pb2, status_pb2

from sixhop.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from sixhop.type.v1 import run_pb2

ADDRESS = os.environ.get("SIXHOP_ADDRESS", "127.0.0.1:7400")
KEY = os.environ.get("SIXHOP_API_KEY")
CALL = {"timeout": 10.0, "metadata": [("authorization", f"Bearer {KEY}")] if KEY else []}


def ask(gateway, question):
    """Print the whole answer at once."""
    answer = gateway.Ask(gateway_pb2.AskRequest(question=question), **CALL)
    print(answer.text)
    for lesser in answer.degradations:
        print(f"degraded: {lesser.part} by {lesser.mechanism}: {lesser.reason}")


def run(gateway, question):
    """Print what happens while the answer is made."""
    for response in gateway.Run(gateway_pb2.RunRequest(question=question), **CALL):
        kind = response.event.WhichOneof("event")  # None for an event of a later release
        event = getattr(response.event, kind) if kind else None
        if kind == "text_delta":
            print(event.text, end="", flush=True)
        elif kind == "restarted":
            print("\nthe text so far is void:", event.reason)
        elif kind == "degraded":
            print(f"degraded: {event.part} by {event.mechanism}: {event.reason}")
        elif kind == "finished":
            print(f"\nfinished: {event.agent}, written by {event.model}")


def failure(error):
    """Say why a call failed, at which hop, and how much time was left."""
    info = error_details_pb2.ErrorInfo()
    packed = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin", b"")
    for detail in status_pb2.Status.FromString(packed).details:
        detail.Unpack(info)  # leaves it as it is when the detail is of another type
    reason = info.reason or error.code().name
    hop = info.metadata.get("originHop") or info.metadata.get("hop", "none")
    left = info.metadata.get("remainingMs", "unknown")
    return f"failed: {reason}, hop {hop}, remainingMs {left}: {error.details()}"


def main(text):
    """Ask in both ways; a call that fails keeps nobody from the next one."""
    with grpc.insecure_channel(ADDRESS) as channel:
        gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
        for call in (ask, run):
            try:
                call(gateway, run_pb2.Question(text=text))
            except grpc.RpcError as error:
                print(failure(error))


main(sys.argv[1])
