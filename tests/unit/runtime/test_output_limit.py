"""Tells whose limit a text has met."""

import pytest

from services.runtime.output_limit import LimitedBy, OutputLimit, limit_that_cut, limited_by
from tests.requirements import requirement


@requirement("run:whose-limit")
@pytest.mark.parametrize(
    ("asked", "allowed", "granted", "written", "limit"),
    [
        (40, 40, 40, 40, OutputLimit(40, LimitedBy.CALLER)),
        (40, 40, 40, None, OutputLimit(40, LimitedBy.CALLER)),
        (0, 512, 512, 512, OutputLimit(512, LimitedBy.SETTINGS)),
        (900, 512, 512, 512, OutputLimit(512, LimitedBy.SETTINGS)),
        (40, 40, 25, 25, OutputLimit(25, LimitedBy.TIME)),
        (0, 512, 25, None, OutputLimit(25, LimitedBy.TIME)),
        (40, 40, 40, 17, OutputLimit(17, LimitedBy.PROVIDER)),
        (40, 40, 25, 17, OutputLimit(17, LimitedBy.PROVIDER)),
        # Some count a token more than they were allowed.
        (40, 40, 40, 41, OutputLimit(40, LimitedBy.CALLER)),
    ],
)
def test_the_least_of_all_limits_is_the_one_that_cut(
    asked: int, allowed: int, granted: int, written: int | None, limit: OutputLimit
) -> None:
    told = limit_that_cut(asked=asked, allowed=allowed, granted=granted, written=written)

    assert told == limit


@pytest.mark.parametrize("told", ["", "somebody-new"])
def test_a_limit_of_which_nothing_is_told_is_nobodys(told: str) -> None:
    assert limited_by(told) is LimitedBy.UNKNOWN
