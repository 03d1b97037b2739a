"""Holds what is known of other processes' load to what they told last."""

from services.runtime.clock import ManualClock
from services.runtime.load_report import LoadReport, encode_load_report
from services.runtime.loads import MAX_AGE_S, Loads


def report(rps: float) -> bytes:
    """Return a trailer that tells a rate."""
    return encode_load_report(LoadReport(rps=rps))


def test_the_newest_report_of_any_endpoint_speaks_for_the_dependency() -> None:
    clock = ManualClock()
    loads = Loads(clock)
    loads.endpoint("domain", "a:1").note(report(1))
    clock.advance(1)
    loads.endpoint("domain", "b:1").note(report(2))
    loads.endpoint("tool", "c:1").note(report(3))

    assert loads.fresh("domain") == LoadReport(rps=2)
    assert loads.fresh("tool") == LoadReport(rps=3)
    assert loads.fresh("model") is None


def test_an_old_report_says_nothing_any_more() -> None:
    clock = ManualClock()
    loads = Loads(clock)
    loads.endpoint("domain", "a:1").note(report(1))

    clock.advance(MAX_AGE_S)
    kept = loads.fresh("domain")
    clock.advance(0.1)

    assert kept == LoadReport(rps=1)
    assert loads.fresh("domain") is None


def test_an_endpoint_keeps_its_reader() -> None:
    loads = Loads(ManualClock())

    assert loads.endpoint("domain", "a:1") is loads.endpoint("domain", "a:1")
    assert loads.endpoint("domain", "a:1") is not loads.endpoint("domain", "b:1")
