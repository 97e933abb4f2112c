# SPDX-License-Identifier: Apache-2.0
"""Copies of copies: however many a program makes, a trace has as many as all its forms can hold, and says so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import msgspec
import pytest

from tailrace.cli.errors import FailedError
from tailrace.cli.inspect import replay
from tailrace.switch.compiler import load_program
from tailrace.switch.core import ActionCall, Replica, V1ModelSwitch
from tailrace.switch.replay.document import SavedTrace
from tailrace.switch.trace import Trace, dry_run_packet, events
from tailrace.switch.trace.injection import send_packet
from tailrace.switch.trace.records import MOST_DEPTH, TOO_DEEP
from tailrace.switch.trace.text import CUT, summary, text
from tests.switch.bmv2_builder import Builder, assign, call, const, field, op
from tests.switch.trace.test_proto import message_of

A_CLONE = 2
"""Copies of copies that a clone is: the clone for its session, and the session's replica."""


@pytest.fixture(scope="module")
def switch() -> Iterator[V1ModelSwitch]:
    """Clones a packet as often as its first byte says, and each clone once less."""
    b = Builder([("left", 8)])
    less = assign(field("in", "left"), op("-", field("in", "left"), const(1)))
    clone = b.action("clone", [less, call("clone_egress_pkt_to_egress", const(1), const(0))])
    rest = b.action("rest", [])
    b.table("t", [("exact", "in", "left")], "exact", [clone, rest], default=(clone, []), egress=True)
    with V1ModelSwitch(load_program(b.text())) as made:
        made.clone_set(1, [Replica(3, 1)])
        made.table_insert(0, b"\0", b"", target=ActionCall(rest))
        yield made


def depth_of(steps: Sequence[events.Event]) -> int:
    return max((1 + depth_of(step.steps) for step in steps if isinstance(step, events.CopyEvent)), default=0)


@pytest.mark.parametrize("clones", [1, MOST_DEPTH // A_CLONE, MOST_DEPTH // A_CLONE + 1, 60, 120, 255])
@pytest.mark.parametrize("sent", [False, True], ids=["tried", "sent"])
def test_every_form_of_a_trace_can_be_made_and_read(switch: V1ModelSwitch, clones: int, sent: bool) -> None:
    frame = bytes([clones, 0])
    put = lambda port, data: switch.inject(port, data, 0)  # noqa: E731
    trace = send_packet(switch, put, 1, frame) if sent else dry_run_packet(switch, 1, frame)
    switch.outputs()
    deep = A_CLONE * clones > MOST_DEPTH
    assert trace.cut == deep
    assert depth_of(trace.steps) == (MOST_DEPTH + 1 if deep else A_CLONE * clones)
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
    message = message_of(trace)
    assert type(message).FromString(message.SerializeToString()) == message
    lines = text(trace)
    assert lines.count(TOO_DEEP.text) == deep
    assert lines.endswith(f"{CUT}\n") == deep
    assert sum(TOO_DEEP.text in line for _, _, line in summary(trace)) == deep


def test_what_is_cut_is_not_compared_with_what_was_saved(
    switch: V1ModelSwitch, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = dry_run_packet(switch, 1, b"\xff\0")
    monkeypatch.setattr("tailrace.switch.replay.runner.run", lambda _: trace)
    with pytest.raises(FailedError, match=CUT):
        replay._natively(cast(SavedTrace, None), full=False, json=False)
    assert TOO_DEEP.text in capsys.readouterr().out
