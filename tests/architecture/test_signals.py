"""Shows that the processes of tests hear signals even where this one ignores them."""

import signal
import subprocess
import sys

import pytest

from tests.conftest import HEARD, hear_signals

TELL = "import signal, sys; print(signal.getsignal(int(sys.argv[1])) is signal.SIG_IGN)"


@pytest.mark.parametrize("number", HEARD)
def test_a_signal_that_is_ignored_here_is_heard_by_a_process_of_a_test(
    number: signal.Signals,
) -> None:
    before = signal.signal(number, signal.SIG_IGN)
    try:
        hear_signals()
        signal.raise_signal(number)
        told = subprocess.check_output([sys.executable, "-c", TELL, str(int(number))], text=True)
    finally:
        signal.signal(number, before)

    assert told.strip() == "False"
