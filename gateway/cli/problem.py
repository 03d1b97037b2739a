"""Defines what a verb refuses to do, and the exit codes."""

EXIT_OK = 0
EXIT_FAILED = 1
"""What was asked for was tried and did not succeed."""
EXIT_USAGE = 2
"""The command, a file or the configuration is wrong, or the suite is not running."""
EXIT_INTERRUPTED = 130
"""As shells say it: 128 and the number of SIGINT."""


class RefusedError(Exception):
    """Ends a verb before it did anything; the text says what is wrong and what to do."""

    exit_code = EXIT_USAGE

    def __init__(self, message: str, *, reason: str = "BAD_USAGE") -> None:
        """Take the sentence for people, and one word for programs."""
        super().__init__(message)
        self.message = message
        self.reason = reason


class FailedError(RefusedError):
    """Ends a verb that tried and did not succeed."""

    exit_code = EXIT_FAILED
