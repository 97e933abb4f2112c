# SPDX-License-Identifier: Apache-2.0
"""Trimmed packets: what switches cut off is on the books, what is left comes through, and nothing is lost."""

from __future__ import annotations

import pytest

from tests.sim.network.trimming import SWITCH, TrimmingRun

INCAST = [(1, 0), (2, 0), (3, 0), (4, 0)]
LENGTH_BYTES = 100_000


@pytest.mark.parametrize("virtual", [True, False])
def test_nothing_is_lost_where_a_queue_trims(virtual: bool) -> None:
    """Each trimmed packet arrives as 54 bytes and is sent again; every byte of every flow arrives."""
    run = TrimmingRun(5, 20_000, virtual=virtual)
    with run.net:
        records = run.send(INCAST, LENGTH_BYTES)
        trimmed_bytes, trims = run.trims()
        account = run.net.account()
        assert run.net.switch(SWITCH).drops() == {}
    assert trims > 20
    assert trimmed_bytes > trims * 1000
    assert trims == sum(record.trimmed for record in records) == len(run.trimmed_lengths)
    assert trims == sum(record.retransmitted for record in records) == sum(record.nacks for record in records)
    assert {0} == set(run.trimmed_lengths)
    assert 0 == sum(record.timeouts for record in records)
    assert all(record.end_ns is not None for record in records)
    assert len(run.accounts) > 10
    assert all(snapshot.balanced for snapshot in run.accounts)
    # all packets are full ones, and a payload is only on these books if it is virtual
    assert account.truncated_bytes == (1000 * trims if virtual else 0)


def test_real_and_virtual_payloads_are_trimmed_alike() -> None:
    """The same packets at the same times, to the nanosecond."""
    stories = []
    for virtual in (True, False):
        run = TrimmingRun(5, 20_000, virtual=virtual)
        with run.net:
            stories.append((run.send(INCAST, LENGTH_BYTES), run.trims(), run.net.now_ps))
    assert stories[0] == stories[1]


def test_trimmed_packets_take_no_more_room_than_they_have_bytes() -> None:
    """A queue that data has filled holds headers besides, and all of them together stay in their room."""
    run = TrimmingRun(4, 5_000, virtual=True)
    with run.net:
        run.net.sample(1_000)
        records = run.send([(1, 0), (2, 0), (3, 0), (0, 1)], LENGTH_BYTES)
        samples = run.net.samples()
        _, trims = run.trims()
    assert trims > 20
    assert all(record.end_ns is not None for record in records)
    # the limit of data, and at most as much again for trimmed packets
    most = max(max(of_port.queue_bytes) for of_port in samples.ports.values())
    assert 5_000 - 1074 < most <= 2 * 5_000
