"""Lets a client that has no protos ask a hop for its services and messages."""

from collections.abc import Sequence

import grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

V1 = "grpc.reflection.v1.ServerReflection"
"""What newer clients ask first, and some of them alone."""


def add_reflection(server: grpc.aio.Server, services: Sequence[str]) -> None:
    """Serve reflection, in both of its versions, for services by their full names.

    The library knows the older version only. Both have the same messages on the wire, so that one
    servicer answers both. The newer is served and not listed: its own description would be missing.
    """
    names = [*services, reflection.SERVICE_NAME]
    reflection.enable_server_reflection(names, server)
    servicer = reflection.aio.ReflectionServicer(names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    methods = {"ServerReflectionInfo": handler}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(V1, methods),))
