"""Holds what is given in place of a tool's answer to what the tool declares, and to its order."""

from collections.abc import Mapping
from dataclasses import replace

import orjson
import pytest
from pydantic import JsonValue

from services.domain.directory import DeclaredTool
from services.domain.fallbacks import LARGE_BYTES, Asked, Codec, ToolFallbacks
from services.domain.sources import DataSource
from services.runtime.call import Callee, Degradation, Fallback
from services.runtime.clock import ManualClock
from services.runtime.policies.fallback import AnswerCache

JSON: Codec[Mapping[str, JsonValue]] = Codec(pack=dict, dump=orjson.dumps, load=orjson.loads)
SQL = DeclaredTool(
    callee=Callee(key="tool/sql", idempotent=True),
    fallbacks=(Fallback.CACHE, Fallback.DEFAULT, Fallback.PARTIAL, Fallback.SKIP),
    cache_age_s=60.0,
    default={"rows": 0},
)
ASKED = Asked(
    name="sql",
    arguments={"query": "select 1", "max_rows": 3},
    sources=(DataSource("a.csv", b"a\n1\n"),),
    language="en",
    tenant="acme",
)


def fallbacks(clock: ManualClock) -> ToolFallbacks[Mapping[str, JsonValue]]:
    """Return the fallbacks of a process that keeps answers."""
    return ToolFallbacks(JSON, AnswerCache(clock))


async def given(
    found: ToolFallbacks[Mapping[str, JsonValue]],
    tool: DeclaredTool = SQL,
    asked: Asked = ASKED,
    *,
    partial: Mapping[str, JsonValue] | None = None,
    optional: bool = False,
) -> list[tuple[Fallback, object]]:
    """Return what would be given, best first."""
    alternatives = found.alternatives(
        tool,
        await found.digest(tool, asked),
        partial=partial,
        optional=optional,
        tell=list[Degradation]().append,
    )
    return [(each.mechanism, await each.run()) for each in alternatives]


async def test_everything_that_fits_is_given_in_its_order(clock: ManualClock) -> None:
    found = fallbacks(clock)
    found.keep(SQL, await found.digest(SQL, ASKED), {"rows": 7})

    assert await given(found, partial={"rows": 1}, optional=True) == [
        (Fallback.CACHE, {"rows": 7}),
        (Fallback.DEFAULT, {"rows": 0}),
        (Fallback.PARTIAL, {"rows": 1}),
        (Fallback.SKIP, {}),
    ]


async def test_nothing_is_given_that_the_tool_does_not_declare(clock: ManualClock) -> None:
    found = fallbacks(clock)
    strict = replace(SQL, fallbacks=(), default=None)
    found.keep(SQL, await found.digest(SQL, ASKED), {"rows": 7})

    assert await given(found, strict, partial={"rows": 1}, optional=True) == []


async def test_a_mandatory_step_is_not_left_out_and_an_agent_gives_what_it_has(
    clock: ManualClock,
) -> None:
    tool = replace(SQL, fallbacks=(Fallback.PARTIAL, Fallback.SKIP))

    assert await given(fallbacks(clock), tool) == []


async def test_an_answer_too_old_is_not_given(clock: ManualClock) -> None:
    found, tool = fallbacks(clock), replace(SQL, fallbacks=(Fallback.CACHE,))
    found.keep(tool, await found.digest(tool, ASKED), {"rows": 7})

    clock.advance(60.0)
    young = await given(found, tool)
    clock.advance(0.1)

    assert young == [(Fallback.CACHE, {"rows": 7})]
    assert await given(found, tool) == []


@pytest.mark.parametrize(
    "other",
    [
        {"arguments": {"query": "select 2", "max_rows": 3}},
        {"sources": (DataSource("a.csv", b"a\n2\n"),)},
        {"sources": (DataSource("b.csv", b"a\n1\n"),)},
        {"sources": ()},
        {"language": "zh"},
        {"tenant": "other"},
        {"name": "sqlite"},
    ],
    ids=lambda other: "-".join(other),
)
async def test_another_request_has_another_answer(
    clock: ManualClock, other: dict[str, object]
) -> None:
    found, tool = fallbacks(clock), replace(SQL, fallbacks=(Fallback.CACHE,))
    found.keep(tool, await found.digest(tool, ASKED), {"rows": 7})

    assert await given(found, tool, replace(ASKED, **other)) == []  # type: ignore[arg-type]


async def test_the_order_of_arguments_does_not_matter(clock: ManualClock) -> None:
    found, tool = fallbacks(clock), replace(SQL, fallbacks=(Fallback.CACHE,))
    found.keep(tool, await found.digest(tool, ASKED), {"rows": 7})
    turned = replace(ASKED, arguments={"max_rows": 3, "query": "select 1"})

    assert await given(found, tool, turned) == [(Fallback.CACHE, {"rows": 7})]


async def test_large_data_is_told_apart_as_well(clock: ManualClock) -> None:
    found = fallbacks(clock)
    large = [
        replace(ASKED, sources=(DataSource("a.csv", letter * (LARGE_BYTES + 1)),))
        for letter in (b"a", b"b", b"a")
    ]

    one, other, again = [await found.digest(SQL, asked) for asked in large]

    assert one == again != other


async def test_what_is_kept_cannot_be_changed_by_who_was_given_it(clock: ManualClock) -> None:
    found, tool = fallbacks(clock), replace(SQL, fallbacks=(Fallback.CACHE,))
    answer: dict[str, JsonValue] = {"rows": 7}
    found.keep(tool, await found.digest(tool, ASKED), answer)

    answer["rows"] = 8
    [(_, first)] = await given(found, tool)
    first["rows"] = 9  # type: ignore[index]

    assert await given(found, tool) == [(Fallback.CACHE, {"rows": 7})]


async def test_without_the_engine_nothing_is_kept_and_no_digest_is_made() -> None:
    found = ToolFallbacks(JSON, None)

    digest = await found.digest(SQL, ASKED)
    found.keep(SQL, digest, {"rows": 7})

    assert digest == ""
    assert await given(found) == [(Fallback.DEFAULT, {"rows": 0})]


async def test_who_asked_is_told_what_was_given(clock: ManualClock) -> None:
    found, told = fallbacks(clock), list[Degradation]()
    found.keep(SQL, await found.digest(SQL, ASKED), {"rows": 7})
    alternatives = found.alternatives(
        SQL, await found.digest(SQL, ASKED), partial={}, optional=True, tell=told.append
    )
    degradation = Degradation(mechanism=Fallback.CACHE, reason="CIRCUIT_OPEN")

    for each in alternatives:
        each.tell(degradation)

    assert told == [degradation] * 4
