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

from tests.sim.network.l3 import ListNic, network, topology
from tests.sim.network.test_faults import stream


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
def handled(number: int, received: list[int], *, raises: bool) -> Iterator[None]:
    def handler(came: int, _frame: object) -> None:
        received.append(came)
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
    nic, received = Interrupting(signals=[number]), list[int]()
    with handled(number, received, raises=True), pytest.raises(KeyboardInterrupt):
        arrivals(nic)
    assert received == [number]
    # all calls were whole, and the rest of the traffic is not waited for
    assert all(nic.whole) and 1 <= len(nic.whole) < 20


def test_a_network_goes_on_after_a_handler_that_raises_nothing() -> None:
    nic, received = Interrupting(signals=[signal.SIGTERM, signal.SIGTERM]), list[int]()
    with handled(signal.SIGTERM, received, raises=False):
        arrived = arrivals(nic)
    assert received == [signal.SIGTERM] * 2
    assert arrived == arrivals(ListNic())


def test_a_second_signal_does_not_wait() -> None:
    """A NIC may hang."""

    class Hanging(Interrupting):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            while True:
                os.kill(os.getpid(), signal.SIGINT)

    received = list[int]()
    with handled(signal.SIGINT, received, raises=True), pytest.raises(KeyboardInterrupt):
        arrivals(Hanging())


def test_in_another_thread_signals_are_those_of_the_main_one() -> None:
    nic, received = Interrupting(signals=[signal.SIGTERM]), list[int]()
    with handled(signal.SIGTERM, received, raises=False):
        thread = threading.Thread(target=arrivals, args=(nic,))
        thread.start()
        thread.join()
    assert received == [signal.SIGTERM]
    assert len(nic.whole) == 20 and all(nic.whole)


def test_a_handler_that_takes_itself_away_stays_away() -> None:
    """As that of the command, whose first SIGTERM ends it, and later ones let it clean up."""

    def once(_came: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, once)
    try:
        with pytest.raises(KeyboardInterrupt):
            arrivals(Interrupting(signals=[signal.SIGTERM]))
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_between_two_runs_nothing_waits() -> None:
    received, order = list[int](), list[str]()

    def callback() -> None:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
            order.append("after the signal")
        order.append("called back")

    with handled(signal.SIGINT, received, raises=True), network(topology()) as net:
        stream(net, 20)
        net.call_at(1000, callback)
        net.run()
    assert (received, order[-1]) == ([signal.SIGINT], "called back")


def test_a_signal_is_not_lost_to_a_nic_that_breaks() -> None:
    class Breaking(Interrupting):
        def on_frame(self, now_ns: int, frame: bytes, virtual_bytes: int = 0) -> None:
            super().on_frame(now_ns, frame, virtual_bytes)
            raise RuntimeError("broken")

    received = list[int]()
    with handled(signal.SIGTERM, received, raises=False), pytest.raises(RuntimeError, match="broken"):
        arrivals(Breaking(signals=[signal.SIGTERM]))
    assert received == [signal.SIGTERM]
