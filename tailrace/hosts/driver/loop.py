# SPDX-License-Identifier: Apache-2.0
"""The event loop: in one thread, waits for frames and for the times at which ports send."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from tailrace.hosts.driver.port import Lag, SocketPort
from tailrace.spec.constants import NS_PER_S

# Longest wait, so that progress is reported in time.
_IDLE_NS = 50_000_000


class StopSignals:
    """A file descriptor that becomes readable after SIGINT or SIGTERM. number: the first signal, or None."""

    def __init__(self) -> None:
        """Handlers are not installed yet; see `installed`."""
        self.number: int | None = None
        self._read, self._write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """The descriptor."""
        return self._read

    def received(self) -> bool:
        return self.number is not None

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if self.number is None:
            self.number = number
            os.write(self._write, b"!")

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Catches both signals within the block."""
        before = {
            number: signal.signal(number, self._on_signal) for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            os.close(self._read)
            os.close(self._write)


class EventLoop:
    """Serves ports until all their flows are complete, a signal arrives, or the timeout expires.

    wake_lag: how late the loop woke up for a frame to be sent.
    wall_ns, busy_ns: duration of the run, and processor time used in it.
    """

    def __init__(self, ports: Sequence[SocketPort], signals: StopSignals, linger_ns: int = 0) -> None:
        """Args:
        signals: the signals that end the loop early.
        linger_ns: how long the loop runs after all NICs have become idle.
        """
        self._ports = ports
        self._linger_ns = linger_ns
        self._signals = signals
        self._by_descriptor = {port.socket.fileno(): port for port in ports}
        self._poll = select.epoll()
        for descriptor in self._by_descriptor:
            self._poll.register(descriptor, select.EPOLLIN)
        self._poll.register(signals.fileno(), select.EPOLLIN)
        self._start_ns = 0
        self.wake_lag = Lag()
        self.wall_ns = 0
        self.busy_ns = 0

    def close(self) -> None:
        """Closes the loop's epoll descriptor."""
        self._poll.close()

    def run(self, timeout_ns: int | None, progress_ns: int, progress: Callable[[int], None]) -> None:
        """Runs the loop; at the call the NICs' time is 0.

        Args:
            timeout_ns: maximum duration of the run; None: no limit.
            progress_ns: time between two calls of `progress`, whose argument is the NICs' time in ns.

        Raises:
            DeviceError: an interface has disappeared or is down.
        """
        self._start_ns = time.monotonic_ns()
        cpu_ns = time.process_time_ns()
        next_progress_ns = progress_ns
        busy_ns = 0  # when a NIC was last not idle
        while self._signals.number is None:
            now_ns = self._now_ns()
            if not all(port.end.idle for port in self._ports):
                busy_ns = now_ns
            elif now_ns - busy_ns >= self._linger_ns:
                break
            if timeout_ns is not None and now_ns >= timeout_ns:
                break
            if now_ns >= next_progress_ns:
                next_progress_ns = now_ns + progress_ns
                progress(now_ns)
            self._wait(self._transmit())
        self.wall_ns = self._now_ns()
        self.busy_ns = time.process_time_ns() - cpu_ns

    def _now_ns(self) -> int:
        return time.monotonic_ns() - self._start_ns

    def _transmit(self) -> int | None:
        """Lets every port send; returns when the next frame is due; None: not before an arrival."""
        times = [port.transmit(self._now_ns()) for port in self._ports]
        return min((time_ns for time_ns in times if time_ns is not None), default=None)

    def _wait(self, until_ns: int | None) -> None:
        """Waits for a frame, at most until a time, then receives the frames that have arrived."""
        now_ns = self._now_ns()
        wait_ns = _IDLE_NS if until_ns is None else max(0, min(until_ns - now_ns, _IDLE_NS))
        if wait_ns:
            # select, because the timeout of epoll is in whole ms
            readable, _, _ = select.select([self._poll], [], [], wait_ns / NS_PER_S)
            woken_ns = self._now_ns()
            if not readable and until_ns is not None and woken_ns >= until_ns:
                self.wake_lag.add(woken_ns - until_ns)
        for descriptor, _ in self._poll.poll(0):
            port = self._by_descriptor.get(descriptor)
            if port is not None:
                port.receive(self._now_ns())
