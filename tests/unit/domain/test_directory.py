"""Holds what callers know of a tool to what the tool declares."""

from google.protobuf.struct_pb2 import Struct

from services.domain.directory import declared_tool, unknown_tool
from services.runtime.call import Callee, Fallback, Group
from services.runtime.durations import to_duration
from sixhop.tool.v1 import tool_pb2


def test_a_card_is_read_as_it_was_written() -> None:
    default = Struct()
    default.update({"rate": 1.0})
    card = tool_pb2.ToolCard(
        name="fx",
        description="Converts.",
        group="external",
        idempotent=True,
        max_concurrency=4,
        slow_call_duration=to_duration(1.5),
        timeout_duration=to_duration(4.0),
        fallbacks=["cache", "default"],
        cache_age_duration=to_duration(60.0),
        default_data=default,
        min_timeout_duration=to_duration(0.5),
    )

    tool = declared_tool(card)

    assert tool.callee == Callee(
        key="tool/fx",
        group=Group.EXTERNAL,
        idempotent=True,
        max_concurrency=4,
        slow_call_s=1.5,
        timeout_s=4.0,
        min_timeout_s=0.5,
        metadata=(("x-sixhop-tool-group", "external"),),
    )
    assert tool.fallbacks == (Fallback.CACHE, Fallback.DEFAULT)
    assert (tool.cache_age_s, tool.default) == (60.0, {"rate": 1.0})
    assert tool.description == "Converts."


def test_words_of_a_newer_tool_hop_are_passed_over() -> None:
    tool = declared_tool(tool_pb2.ToolCard(name="x", group="new", fallbacks=["magic", "skip"]))

    assert (tool.callee.group, tool.fallbacks) == (Group.AUXILIARY, (Fallback.SKIP,))
    assert (tool.callee.min_timeout_s, tool.default) == (None, None)


def test_a_tool_that_nobody_knows_yet_is_never_sent_twice_and_may_be_left_out() -> None:
    tool = unknown_tool("fx")

    assert (tool.callee.key, tool.callee.idempotent) == ("tool/fx", False)
    assert tool.fallbacks == (Fallback.PARTIAL, Fallback.SKIP)
