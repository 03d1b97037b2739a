"""Holds what a run tells people to one language, in which quotations are marked as such."""

import re
from collections.abc import Callable
from functools import partial

import pytest

from services.domain import wording
from services.domain.metrics.objections import OBJECTIONS, objection
from services.runtime.call import Degradation, Fallback
from services.runtime.output_limit import LimitedBy, OutputLimit
from services.runtime.switch import Switch
from tests.requirements import requirement

HAN = re.compile("[\u3400-\u9fff，。；：（）]")
LATIN = re.compile("[A-Za-z]{2,}")
QUOTED = "the provider failed: “Internal error”"
MARKED = f"（原文：{QUOTED}）"
NAMES = ("sql", "small")
ORIGINS = (*wording.FIRST_MODEL_ZH, "PROVIDER_ERROR", "")


def given(reason: str, message: str) -> Degradation:
    return Degradation(mechanism=Fallback.SKIP, reason=reason, message=message)


def switch(origin_reason: str = "", problem: str = QUOTED, *, continued: bool = False) -> Switch:
    return Switch(model="small", problem=problem, origin_reason=origin_reason, continued=continued)


def _cut_off(whose: LimitedBy, callers: bool, language: str) -> str:
    return wording.cut_off("small", OutputLimit(40, whose), language, callers=callers)


TOLD: dict[str, Callable[[str], str]] = {
    "why": lambda language: wording.why("sql", given("DEPENDENCY_FAILED", QUOTED), language),
    "open": lambda language: wording.why("sql", given("CIRCUIT_OPEN", QUOTED), language),
    "failed": lambda language: wording.failed("sql", QUOTED, language),
    "switched": lambda language: wording.another_model(switch(), language),
    "advised": lambda language: wording.another_model(switch(problem=""), language),
    "continued": lambda language: wording.another_model(switch(continued=True), language),
    "no-model": lambda language: wording.no_model(QUOTED, language),
    **{
        f"cut-off-{whose.name}-{callers}": partial(_cut_off, whose, callers)
        for whose in LimitedBy
        for callers in (False, True)
    },
    "not-used": lambda language: wording.not_used(
        "small", wording.ends_at_limit(language), language
    ),
    "nobodys": lambda language: wording.not_used("", "", language),
    "foreign-number": lambda language: wording.foreign_number("small", "48", language),
    "empty": wording.empty_answer,
    "in-part": lambda language: wording.read_in_part(4000, language),
    **{
        f"origin-{reason}": lambda language, reason=reason: wording.another_model(  # type: ignore[misc]
            switch(reason), language
        )
        for reason in ORIGINS
    },
    **{
        f"objection-{kind}": lambda language, kind=kind: objection(  # type: ignore[misc]
            kind, language, said="small", name="sql"
        )
        for kind in OBJECTIONS
    },
}


@requirement("run:one-language")
@pytest.mark.parametrize("name", TOLD)
def test_what_people_are_told_in_chinese_is_chinese_but_for_marked_quotations(name: str) -> None:
    told = TOLD[name]("zh")

    own = told.replace(MARKED, "")
    for known in NAMES:
        own = own.replace(known, "")
    # Which has no name of its own in Chinese.
    own = own.replace("token", "")
    assert HAN.search(own)
    assert not LATIN.search(own), told


@requirement("run:one-language")
@pytest.mark.parametrize("name", TOLD)
def test_what_people_are_told_in_english_is_english(name: str) -> None:
    told = TOLD[name]("en")

    assert LATIN.search(told)
    assert not HAN.search(told.replace(QUOTED, "")), told


def test_what_is_chinese_already_is_no_quotation() -> None:
    late = wording.took_too_long(3.0, "zh")

    assert wording.why("sql", given("BUDGET_TOO_SMALL", late), "zh") == f"sql 没有给出结果：{late}"
    assert wording.failed("sql", late, "zh") == late
