"""Stop requests: SIGTERM, which machines send before they disappear, and Ctrl-C."""

import signal
import threading
import time
from typing import Any, Self

# Commands forward signals to their children, and job managers signal the whole group.
# Signals within this interval count as one request.
ONE_REQUEST_SECONDS = 2.0


class StopRequest:
    """Turns the first SIGTERM or SIGINT into a request that the loop can read.

    As a context manager it sets the handlers and restores the old ones. A signal more
    than `ONE_REQUEST_SECONDS` later has its ordinary effect.

    Attributes:
      signal: number of the first signal, or None.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._noted_at = 0.0  # Time of the first signal.
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Only the main thread may set handlers. Other threads change nothing.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                # A shell may have a background job ignore signals. Keep that.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def __bool__(self) -> bool:
        return self.signal is not None

    def _note(self, number, _):
        if self.signal is None:
            self.signal, self._noted_at = number, time.monotonic()
        elif time.monotonic() - self._noted_at >= ONE_REQUEST_SECONDS:
            self.__exit__()
            signal.raise_signal(number)
