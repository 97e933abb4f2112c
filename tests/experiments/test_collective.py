# SPDX-License-Identifier: Apache-2.0
"""Allreduce: the messages and what they wait for add up to the sum of all vectors at every host."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tailrace.experiments.workloads.allreduce import ALGORITHMS, Message
from tailrace.experiments.workloads.workload import parse_workload
from tailrace.topology import parse_topology

FABRIC = parse_topology("leaf-spine:leaves=4,spines=2,hosts=4")

COUNTS = [("ring", 2), ("ring", 3), ("ring", 7), ("ring", 16)]
COUNTS += [(algorithm, count) for algorithm in ("butterfly", "halving") for count in (2, 4, 8, 32)]


def holds(message: Message, part: int) -> bool:
    return message.first_part <= part < message.first_part + message.parts


def value(
    rank: int,
    part: int,
    received: list[int],
    messages: list[Message],
    contents: list[dict[int, Counter[int]]],
) -> Counter[int]:
    """What a host knows of a part: whose numbers are in its sum, and how often.

    Args:
        received: indices of messages that it has received.
        contents: of each message, by part.
    """
    about = [index for index in received if holds(messages[index], part)]
    spread = [index for index in about if messages[index].spreads]
    if spread:
        return contents[spread[-1]][part]
    return sum((contents[index][part] for index in about), Counter([rank]))


def adds_up(messages: list[Message], count: int) -> bool:
    """Whether every host has every number once at the end, if messages hold only what they wait for brought."""
    parts = messages[0].total_parts
    contents: list[dict[int, Counter[int]]] = []
    received: dict[int, list[int]] = defaultdict(list)
    for index, message in enumerate(messages):
        known = sorted(number - 1 for number in message.after)
        held = [part for part in range(parts) if holds(message, part)]
        contents.append({part: value(message.sender, part, known, messages, contents) for part in held})
        received[message.receiver].append(index)
    return all(
        value(rank, part, received[rank], messages, contents) == Counter(range(count))
        for rank in range(count)
        for part in range(parts)
    )


@pytest.mark.parametrize(("algorithm", "count"), COUNTS)
def test_every_host_ends_with_the_sum(algorithm: str, count: int) -> None:
    """It waits for messages that its sender has received; at the end everyone has every number exactly once."""
    messages = list(ALGORITHMS[algorithm](count))
    for index, message in enumerate(messages):
        waits = [number - 1 for number in message.after]
        assert all(messages[number].receiver == message.sender and number < index for number in waits)
    assert adds_up(messages, count)


@pytest.mark.parametrize(("algorithm", "count"), [("ring", 4), ("butterfly", 8), ("halving", 8)])
def test_every_wait_is_needed(algorithm: str, count: int) -> None:
    """Without any single one of the waits, the sum may lack numbers."""
    messages = list(ALGORITHMS[algorithm](count))
    for index, message in enumerate(messages):
        for number in message.after:
            hasty = replace(message, after=tuple(other for other in message.after if other != number))
            assert not adds_up([*messages[:index], hasty, *messages[index + 1 :]], count)


@settings(max_examples=40)
@given(st.sampled_from(COUNTS), st.integers(32, 5000))
def test_bytes_on_the_way(case: tuple[str, int], size_bytes: int) -> None:
    """Ring and halving send 2(n-1) vectors in all, what is optimal; recursive doubling n log2 n."""
    algorithm, count = case
    sizes = [message.size_bytes(size_bytes) for message in ALGORITHMS[algorithm](count)]
    steps = count.bit_length() - 1
    assert min(sizes) >= 1
    assert sum(sizes) == size_bytes * (count * steps if algorithm == "butterfly" else 2 * (count - 1))


def test_numbers_of_messages_of_128_hosts() -> None:
    """As many steps as the algorithms have: 2 * 127 for the ring, 7 for recursive doubling, 14 for halving."""
    counts = {name: sum(1 for _ in algorithm(128)) for name, algorithm in ALGORITHMS.items()}
    assert counts == {"ring": 128 * 254, "butterfly": 128 * 7, "halving": 128 * 14}


def test_words() -> None:
    """Eight of the hosts, the ring by default, each flow a part of the vector, to the right neighbour."""
    made = parse_workload("allreduce:size=8001,hosts=8").traffic(FABRIC, random.Random(1)).flows
    assert len(made) == 8 * 14
    assert {flow.bytes for flow in made} == {1000, 1001}
    targets = {flow.src: flow.dst for flow in made}
    assert all(targets[flow.src] == flow.dst for flow in made)
    assert set(targets) == set(targets.values())
    assert all(flow.start_ns == 0 for flow in made)
