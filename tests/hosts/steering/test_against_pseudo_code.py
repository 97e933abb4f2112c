# SPDX-License-Identifier: Apache-2.0
"""Scout and Spray do what Algorithms 1-3 say, packet by packet, for any feedback whatever."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.hosts.flows.paths import PathList
from tailrace.hosts.options.nic import SteeringConfig
from tailrace.hosts.steering.scout import Scout
from tailrace.hosts.steering.spray import Spray
from tailrace.hosts.steering.spritz import Spritz
from tests.hosts.steering.oracle import TIMEOUT, Oracle
from tests.hosts.steering.path_lists import Given, endless

# Powers of two, and whole numbers below them, are the same in floating and in fixed point.
LARGEST = 8

paths = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.lists(st.integers(1, 65535), min_size=count, max_size=count, unique=True),
        st.lists(st.integers(1, 4), min_size=count, max_size=count),
        st.lists(st.integers(0, LARGEST), min_size=count - 1, max_size=count - 1).map(
            lambda rest: [LARGEST, *rest]
        ),
    )
)
# a packet is sent; or the feedback of one that was sent so many packets ago; or of no packet at all
events = st.lists(
    st.tuples(
        st.integers(0, 30),  # time since the last one
        st.one_of(
            st.just("send"),
            st.tuples(
                st.sampled_from([0, 0, 1, 1, 1, 2, 3]), st.one_of(st.integers(0, 20), st.just("unknown"))
            ),
        ),
    ),
    min_size=70,
    max_size=200,
)


@settings(max_examples=60)
@given(
    spray=st.booleans(),
    paths=paths,
    explore=st.sampled_from([0, 1, 5, 1000]),
    ecn=st.sampled_from([0, 1, 3]),
    size=st.sampled_from([1, 2, 8]),
    timer=st.sampled_from([1, 60, 10_000]),
    bias=st.sampled_from([0, 1, 32]),
    gain=st.sampled_from([1 / 16, 0.5, 1.0]),
    numbers=st.lists(st.integers(0, 2**20 - 1).map(lambda number: number / 2**20), min_size=1, max_size=30),
    events=events,
)
def test_every_choice_is_that_of_the_pseudo_code(
    spray, paths, explore, ecn, size, timer, bias, gain, numbers, events
):
    """The EV of each packet, the buffer, the weights and the counts; with the same random numbers."""
    evs, latencies, weights = paths
    config = SteeringConfig(
        explore_threshold=explore,
        ecn_threshold=ecn,
        buffer=size,
        timer_ns=timer,
        min_bias_factor=bias,
        ecn_gain=gain,
    )
    listed = PathList(tuple(evs), tuple(latencies), tuple(map(float, weights)))
    ours: Spritz = (Spray if spray else Scout)(config, listed, 0, Given(numbers))
    source = endless(numbers)
    theirs = Oracle(
        spray, evs, latencies, list(map(float, weights)), explore, ecn, size, timer, bias, gain, 0.9,
        lambda: next(source),
    )  # fmt: skip
    unknown = next(ev for ev in range(1, 99) if ev not in evs)
    sent: list[int] = []
    timeouts = 0
    now = 0
    for later, event in events:
        now += later
        if event == "send":
            ev = ours.next_ev(now)
            assert theirs.send(now) == ev
            sent.append(ev)
        else:
            feedback, which = event
            ev = sent[-1 - which] if which != "unknown" and which < len(sent) else unknown
            ours.on_feedback(now, feedback, ev)
            theirs.feedback(now, feedback, ev)
            timeouts += feedback == TIMEOUT and ev in evs
        assert theirs.buffer_paths == ours.buffer_paths
        assert theirs.packet_count == ours.packet_count
        assert theirs.ecn_rate == ours.ecn_rate
        assert [weight == 0 for weight in theirs.w] == [ours.w.is_zero(i) for i in range(len(evs))]
        assert sum(theirs.w) * 2**20 / LARGEST == ours.w.total
        # (compiled classes of one family share what abc remembers of isinstance)
        if type(ours) is Scout:
            assert theirs.ecn_counts == [ours.ecn_counts.get(i, 0) for i in range(len(evs))]
    assert (len(sent), timeouts) == (ours.explored + ours.reused, ours.blocked)
