"""Becomes a program that ends when its parent ends.

`sixhop up` starts every process through this file. On Linux the kernel then ends the process when
`up` dies, however it died. Other systems know no such wish: there a killed `up` leaves its hops.
The file imports nothing of the project, so that it costs a hundredth of a second.
"""

import ctypes
import os
import signal
import sys
from typing import NoReturn

PR_SET_PDEATHSIG = 1
EXIT_ORPHAN = 71


def main(arguments: list[str]) -> NoReturn:
    """Replace this process by `arguments[1:]`, tied to the parent `arguments[0]`."""
    parent, *command = arguments
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != int(parent):
            sys.exit(EXIT_ORPHAN)  # it died before the kernel knew our wish
    os.execv(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
