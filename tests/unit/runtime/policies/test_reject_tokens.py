"""Holds the rules that may be wrong to refusing a part of all calls, so that they can heal."""

from hypothesis import given
from hypothesis import strategies as st

from services.runtime.call import Criticality, Mode
from services.runtime.clock import ManualClock
from services.runtime.policies.admission import Admission, AdmissionConfig
from services.runtime.policies.limit import Fixed
from services.runtime.reject_tokens import RejectTokens
from tests.unit.runtime.policies.admissions import admitted, served

ESTIMATING = AdmissionConfig(estimate=Mode.ENFORCE)


@given(st.lists(st.booleans(), max_size=300), st.floats(0.05, 0.95), st.integers(1, 20))
def test_of_any_calls_in_a_row_no_more_than_the_part_is_refused(
    wanted: list[bool], ratio: float, burst: int
) -> None:
    tokens = RejectTokens(ratio, burst)

    refused = []
    for wants in wanted:
        tokens.looked += 1
        refused.append(wants and tokens.try_refuse())

    share = round(1000 * ratio) / 1000
    for first in range(0, len(refused), 7):
        for last in range(first, len(refused), 5):
            assert sum(refused[first:last]) <= share * (last - first) + burst + 1e-9


async def test_no_calm_before_pays_for_refusing_everybody(clock: ManualClock) -> None:
    paths = iter([1.0] * 1000 + [100.0] * 20)
    admission = Admission(ESTIMATING, Fixed(9), clock, lambda _: next(paths))
    for _ in range(1020):
        await admitted(admission, served(clock, Criticality.CRITICAL))

    assert admission.snapshot().spared_count >= 3


async def test_the_fair_share_refuses_four_of_five_and_one_flood(clock: ManualClock) -> None:
    admission = Admission(AdmissionConfig(), Fixed(20), clock)
    for tenant in ["cold"] * 2 + ["hot"] * 10:
        await admission(served(clock, Criticality.CRITICAL, tenant)).__aenter__()

    let_in = [
        await admitted(admission, served(clock, Criticality.CRITICAL, "hot")) for _ in range(300)
    ]

    # Of a flood fifty more may be refused, which the calm before has paid for.
    refused = let_in.count(False)
    assert 0.8 * 300 <= refused <= 0.8 * 300 + 51
    assert admission.snapshot().refused == {"fair_share/CRITICAL": refused}
    assert admission.snapshot().spared_count == 300 - refused
