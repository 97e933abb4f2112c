# SPDX-License-Identifier: Apache-2.0
"""Signals that come while a network runs: their handlers wait until it has stopped, and nothing is lost by that."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.native.virtual.l3 import ListNic, network, topology
from tests.native.virtual.test_faults import stream


@dataclass
class Interrupting(ListNic):
    """Sends its own process signals while it is called; notes which calls it came to the end of."""

    signals: list[int] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)

    def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
        self.whole.append(False)
        if self.signals:
            os.kill(os.getpid(), self.signals.pop(0))
        # Python calls handlers between two lines, and within arithmetic of large numbers
        assert (1 << 2000) * (1 << 2000)
        super().on_frame(now_ns, frame, virtual_bytes)
        self.whole[-1] = True


@contextmanager
def handled(number: int, told: list[int], *, raises: bool) -> Iterator[None]:
    def handler(came: int, _frame: object) -> None:
        told.append(came)
        if raises:
            raise KeyboardInterrupt

    before = signal.signal(number, handler)
    try:
        yield
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


def arrivals(nic: ListNic) -> list[tuple[int, bytes, int]]:
    with network(topology()) as net:
        stream(net, 20)
        net.attach("h3", nic)
        net.run()
    return nic.arrived


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_a_handler_raises_waits_for_the_nic(number: int) -> None:
    nic, told = Interrupting(signals=[number]), list[int]()
    with handled(number, told, raises=True), pytest.raises(KeyboardInterrupt):
        arrivals(nic)
    assert told == [number]
    # all calls were whole, and the rest of the traffic is not waited for
    assert all(nic.whole) and 1 <= len(nic.whole) < 20


def test_a_network_goes_on_after_a_handler_that_raises_nothing() -> None:
    nic, told = Interrupting(signals=[signal.SIGTERM, signal.SIGTERM]), list[int]()
    with handled(signal.SIGTERM, told, raises=False):
        found = arrivals(nic)
    assert told == [signal.SIGTERM] * 2
    assert found == arrivals(ListNic())


def test_a_second_signal_does_not_wait() -> None:
    """A NIC may hang."""

    class Hanging(Interrupting):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            while True:
                os.kill(os.getpid(), signal.SIGINT)

    told = list[int]()
    with handled(signal.SIGINT, told, raises=True), pytest.raises(KeyboardInterrupt):
        arrivals(Hanging())


def test_in_another_thread_signals_are_those_of_the_main_one() -> None:
    nic, told = Interrupting(signals=[signal.SIGTERM]), list[int]()
    with handled(signal.SIGTERM, told, raises=False):
        thread = threading.Thread(target=arrivals, args=(nic,))
        thread.start()
        thread.join()
    assert told == [signal.SIGTERM]
    assert len(nic.whole) == 20 and all(nic.whole)
