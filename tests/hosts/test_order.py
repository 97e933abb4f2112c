# SPDX-License-Identifier: Apache-2.0
"""Counting reordering, against the definition."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.nic.order import OrderObserver

Arrivals = list[tuple[int, bool]]


def observe(arrivals: Arrivals) -> tuple[int, int, int]:
    """(out of order, overtaken, degree) of arrivals: number, and whether it is a retransmission."""
    observer = OrderObserver()
    for index, retransmission in arrivals:
        observer.on_packet(index, retransmission, tag=0)
    return observer.out_of_order, observer.overtaken, observer.degree_max


def by_definition(arrivals: Arrivals) -> tuple[int, int, int]:
    """The same, with the future known: which first transmissions arrive at all."""
    firsts = [index for index, retransmission in arrivals if not retransmission]
    expected_numbers = sorted(firsts)
    out_of_order = overtaken = degree = 0
    highest = -1
    for index in firsts:
        expected = expected_numbers[0]
        if index != expected:
            out_of_order += 1
            degree = max(degree, index - expected)
        overtaken += index < highest
        highest = max(highest, index)
        expected_numbers.remove(index)
    return out_of_order, overtaken, degree


@st.composite
def arrivals(draw):
    """Some packets are lost, the others come in order or in any order; lost ones come again, at any time."""
    count = draw(st.integers(1, 24))
    lost = draw(st.sets(st.integers(0, count - 1)))
    order = [index for index in range(count) if index not in lost]
    if draw(st.booleans()):
        order = draw(st.permutations(order))
    sequence = [(index, False) for index in order]
    for index in sorted(lost):
        if draw(st.booleans()):
            sequence.insert(draw(st.integers(0, len(sequence))), (index, True))
    return sequence


@settings(max_examples=150)
@given(arrivals())
def test_counts_are_those_of_the_definition(sequence):
    """Expected is the smallest PSN that still comes as a first transmission (Flowcut §III-C2), losses aside."""
    assert by_definition(sequence) == observe(sequence)


def test_a_packet_later_than_its_retransmission_counts_once():
    """Once the gap is closed, nobody knows any more who waited for it."""
    assert (1, 1, 2) == observe([(0, False), (2, False), (3, False), (1, True), (1, False)])


def test_a_senseless_jump_costs_no_memory_without_bound():
    """A forged PSN far away opens no more gaps than a window can have."""
    assert (0, 0, 0) == observe([(0, False), (1 << 23, False)])


def path_changes(arrivals: list[tuple[int, bool, int]]) -> int:
    """As the receiver counts them, of arrivals: number, whether it is a retransmission, path tag."""
    observer = OrderObserver()
    for index, retransmission, tag in arrivals:
        observer.on_packet(index, retransmission, tag)
    return observer.path_changes


def path_changes_by_definition(arrivals: list[tuple[int, bool, int]]) -> int:
    """The same with the future known: first transmissions in the order of sending."""
    sent = {index: tag for index, again, tag in arrivals if not again}
    tags = [sent[index] for index in sorted(sent)]
    return sum(previous != other for previous, other in itertools.pairwise(tags))


@st.composite
def tagged(draw):
    """As before, with tags, and with retransmissions of packets that are only late."""
    sequence = draw(arrivals())
    for index in draw(st.sets(st.integers(0, 23), max_size=4)):
        sequence.insert(draw(st.integers(0, len(sequence))), (index, True))
    return [(index, again, draw(st.integers(0, 2))) for index, again in sequence]


@settings(max_examples=90)
@given(tagged())
def test_path_changes_are_in_the_order_of_sending(sequence):
    """Whatever overtakes what, is lost, or comes again."""
    assert path_changes_by_definition(sequence) == path_changes(sequence)


def test_tags_cost_no_memory_without_bound():
    """One late packet of a long flow: those behind it are remembered for a while, and it is left out then."""
    turns = [(0, False, 1), (1, True, 0), *((index, False, index % 2) for index in range(2, 100_000))]
    whole = path_changes(turns)
    assert whole == path_changes_by_definition(turns)
    assert path_changes([*turns, (1, False, 0)]) == whole
