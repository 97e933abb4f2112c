# SPDX-License-Identifier: Apache-2.0
"""The history of a packet of a finished run, as text of about 80 columns."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tailrace.spec.constants import PS_PER_NS
from tailrace.spec.text import one_line, printable
from tailrace.study.packet.history import Hop, LinkTransit, PacketHistory, QueueWait, Transmission
from tailrace.switch.trace import events
from tailrace.switch.trace.events import Event
from tailrace.switch.trace.text import INDENT, Line, lines, shown_step

_PS_PER_US = 1000 * PS_PER_NS
_MOST_SHOWN = 4
"""Limit of the number of other packets that are listed; for the rest only their number is shown."""

_BRIEF = (
    *(events.MemberEvent, events.MeterEvent, events.ParserErrorEvent, events.CloneEvent, events.DigestEvent),
    *(events.ResubmitEvent, events.RecirculateEvent, events.MulticastEvent, events.TextEvent),
)
"""Steps that are shown without `--full`; what other steps do is shown by other lines of the history."""

_INSIDE = 3
"""Indentation depth of what happens within one switch or host."""

_TIME_COLUMNS = 14
_LEAST_COLUMNS = 40


def of_folder(folder: Path, flow: int, psn: int) -> PacketHistory:
    """The history of a packet, by repeating the run; progress is shown on standard error.

    Raises:
        SpecError: there is no such run or packet.
        RunError: the repeated run has another trace.
    """
    import sys

    from tailrace.cli.experiment_command import interruptible
    from tailrace.study.packet.reconstruction import packet_history
    from tailrace.study.packet.rerun import open_run
    from tailrace.study.progress import Display

    display = Display(sys.stderr)
    with interruptible("no history is shown"):
        return packet_history(open_run(folder), flow, psn, display.run)


def history_lines(history: PacketHistory, *, full: bool) -> Iterator[Line]:
    """The lines of a history, wrapped to the width of the terminal at spaces.

    Args:
        full: whether to show every step of the switches' programs.
    """
    width = _width()
    for depth, style, line in _unwrapped(history, full):
        line_width = max(_LEAST_COLUMNS // 2, width - depth * len(INDENT))
        pieces = textwrap.wrap(
            line, line_width, subsequent_indent=INDENT, break_long_words=False, break_on_hyphens=False
        )
        for piece in pieces or [""]:
            yield depth, style, printable(piece)


def _width() -> int:
    return max(_LEAST_COLUMNS, shutil.get_terminal_size().columns)


def _unwrapped(history: PacketHistory, full: bool) -> Iterator[Line]:
    yield (
        0,
        "packet",
        f"{history.scheme}, {history.topology}, seed {history.seed}; run again, with the same trace",
    )
    yield (
        0,
        "packet",
        (
            f"flow {history.flow}, {history.src} to {history.dst}: {history.bytes:,} bytes in "
            f"{history.packets:,} packets; PSN {history.psn}"
        ),
    )
    before = history.before
    if before is not None:
        ago = history.transmissions[0].first.sent_ps - before.sent_ps
        yield 0, "step", f"the flow's packet before it, PSN {before.psn}, was sent {_us(ago)} earlier"
    for pause in history.pauses:
        yield (
            0,
            "choice",
            f"{_when(pause.arrived_ps)}  a pause of the flow comes to {history.src}: {pause.op}",
        )
    for number, each in enumerate(history.transmissions, 1):
        if len(history.transmissions) > 1:
            yield 0, "stage", f"transmission {number} of {len(history.transmissions)}"
        yield from _transmission(history, each, full)
    ack = history.acknowledged
    if ack is None:
        yield 0, "bad", "no ACK for it came before the run ended"
    else:
        yield (
            0,
            "sent",
            (
                f"{_when(ack.arrived_ps)}  {history.src} gets the ACK of all packets up to PSN {ack.psn}, "
                f"which {history.dst} sent at {_us(ack.sent_ps)}"
            ),
        )
    if history.untold:
        yield 0, "bad", "a switch recorded only part of what happened: more packets may have overtaken it"


def _transmission(history: PacketHistory, sent: Transmission, full: bool) -> Iterator[Line]:
    again = ", a retransmission" if sent.again else ""
    yield from ((0, "choice", f"{' ' * _TIME_COLUMNS}  {line}") for line in _at_source(history, sent))
    yield (
        0,
        "packet",
        (
            f"{_when(sent.first.sent_ps)}  {history.src} sends it: {sent.first.length} bytes, UDP source "
            f"port {sent.sport}{again}"
        ),
    )
    ecn = sent.first.ecn
    for hop in sent.hops:
        yield from _hop(hop, full)
        if hop.out is not None:
            yield from _changed(hop, ecn, hop.out)
            ecn = hop.out.ecn or ecn
    last = sent.hops[-1].out if sent.hops else sent.first
    if last is not None and last.arrived_ps is not None:
        yield 0, "sent", f"{_when(last.arrived_ps)}  {last.to} has it: {sent.end}"
    elif last is not None:
        yield 0, "drop", f"{' ' * _TIME_COLUMNS}  it ends on its way to {last.to}: {sent.end}"
    yield _INSIDE, "step", f"path {' > '.join(sent.path)}{_compared(history, sent)}"
    if sent.delivered_ps is not None:
        yield _INSIDE, "step", _sum(sent)
        yield from _overtaken(sent)


def _at_source(history: PacketHistory, sent: Transmission) -> Iterator[str]:
    """What the source did before this transmission, and how it chose the path."""
    actions = sent.source
    if actions is None:
        return
    nic = f"the NIC of {history.src}"
    if actions.timeouts:
        yield f"{nic} got no ACK in time: {_count(actions.timeouts, 'timeout')}"
    if actions.nacks:
        yield f"{nic} was notified of {_count(actions.nacks, 'trimmed packet')}"
    if actions.congestion_notifications:
        yield f"{nic} got {_count(actions.congestion_notifications, 'CNP')}, and sends more slowly"
    if actions.drained_ns:
        yield f"{nic} has paused the flow for {_us(actions.drained_ns * PS_PER_NS)} to drain it"
    if actions.stretched:
        yield f"{nic} has stretched the gap by {_us(actions.stretched_ns * PS_PER_NS)} (HF2T)"
    if actions.reroutes:
        yield f"{nic} has taken another source port, and so another path"
    if actions.blocked:
        yield f"{nic} has blocked {_count(actions.blocked, 'path')} after a timeout"
    if actions.explored:
        yield f"{nic} has chosen the path at random"
    elif actions.reused:
        yield f"{nic} has reused a path with good feedback"


def _compared(history: PacketHistory, sent: Transmission) -> str:
    before = history.before
    if before is None or sent is not history.transmissions[0] or before.path[-1] != sent.path[-1]:
        return ""
    if before.path == sent.path:
        return f", as PSN {before.psn} before it"
    return f"; a new one: PSN {before.psn} took {' > '.join(before.path)}"


def _sum(sent: Transmission) -> str:
    assert sent.delivered_ps is not None
    parts = [f"{_us(sent.waited_ps)} in queues"]
    if sent.paused_ps:
        parts[0] += f" (PFC paused these for {_us(sent.paused_ps)})"
    if sent.round_ps:
        parts.append(f"{_us(sent.round_ps)} recirculating in switches")
    parts += [f"{_us(sent.transmission_ps)} transmission", f"{_us(sent.propagation_ps)} propagation"]
    return f"{_us(sent.delivered_ps - sent.first.sent_ps)} = {' + '.join(parts)}"


def _overtaken(sent: Transmission) -> Iterator[Line]:
    overtaking = sent.overtaken_by
    if not overtaking:
        yield _INSIDE, "hit", "overtaken by no packet of its flow"
        return
    yield (_INSIDE, "choice", f"overtaken by {_count(len(overtaking), 'packet')} of its flow:")
    for packet in overtaking[:_MOST_SHOWN]:
        again = ", a retransmission" if packet.again else ""
        path = "the same path" if packet.path == sent.path else " > ".join(packet.path)
        assert sent.delivered_ps is not None
        yield (
            _INSIDE + 1,
            "choice",
            (
                f"PSN {packet.psn}{again}: sent {_us(packet.sent_ps - sent.first.sent_ps)} later, delivered "
                f"{_us(sent.delivered_ps - packet.delivered_ps)} earlier, {path}"
            ),
        )
    if len(overtaking) > _MOST_SHOWN:
        yield _INSIDE + 1, "choice", f"and {len(overtaking) - _MOST_SHOWN} more"


def _hop(hop: Hop, full: bool) -> Iterator[Line]:
    yield 0, "stage", f"{_when(hop.arrived_ps)}  {hop.switch}, in by port {hop.port} from {hop.from_}"
    if hop.trace is not None:
        shown = lines(hop.trace, full=False) if full else _brief(hop.trace.steps)
        yield from ((depth + _INSIDE, style, line) for depth, style, line in shown)
    for queue in hop.queues:
        yield from _queue(queue, hop)
    if hop.rounds:
        yield (_INSIDE, "choice", f"recirculated {hop.rounds} times, which took {_us(hop.round_ps)}")
    if hop.dropped is not None:
        when = _when(hop.dropped_ps) if hop.dropped_ps is not None else " " * (_TIME_COLUMNS - 2)
        yield 0, "drop", f"{when}  it ends in {hop.switch}: {hop.dropped}"


def _brief(steps: Sequence[Event], depth: int = 0) -> Iterator[Line]:
    """Steps that decide the packet's path, one line each: entries hit, members, recirculations, copies."""
    for step in steps:
        if isinstance(step, events.TableEvent) and step.entry is not None:
            name = step.name.rpartition(".")[2]
            text = f"{name}: {step.written or f'entry {step.entry}'}"
            yield depth, "hit", one_line(text, _width() - len(INDENT) * (depth + _INSIDE))
        elif isinstance(step, events.CopyEvent):
            yield depth, "packet", f"a copy is made{'' if step.port is None else f' for port {step.port}'}"
            yield from _brief(step.steps, depth + 1)
        elif depth and isinstance(step, events.SentEvent):
            yield depth, "sent", f"leaves by port {step.port}: {len(step.frame) // 2} bytes"
        elif isinstance(step, _BRIEF) or (depth and isinstance(step, events.DropEvent)):
            yield from shown_step(step, depth)


def _queue(queue: QueueWait, hop: Hop) -> Iterator[Line]:
    to = ""
    if hop.out is not None and queue is hop.queues[-1]:
        to = f" to {hop.out.to}"
    content = (
        "it is empty"
        if not queue.packets
        else f"{_count(queue.packets, 'packet')}, {queue.bytes:,} bytes wait"
    )
    yield _INSIDE, "step", f"queue of port {queue.port}{to}, priority {queue.priority}: {content}"
    if queue.left_ps is None:
        yield _INSIDE, "bad", "it never left that queue"
        return
    waited = f"waits {_us(queue.waited_ps)}" if queue.waited_ps else "does not wait"
    paused = f", for {_us(queue.paused_ps)} of it because PFC pauses the queue" if queue.paused_ps else ""
    yield _INSIDE, "choice" if queue.waited_ps else "step", f"{waited}{paused}"
    if queue.passed_by:
        yield (
            _INSIDE,
            "choice",
            f"overtaken there by {_count(queue.passed_by, 'packet')} that came later: {_named(queue)}",
        )


def _named(queue: QueueWait) -> str:
    counts = Counter(f"{entry.packet} (priority {entry.priority})" for entry in queue.passed)
    shown = dict(list(counts.items())[:_MOST_SHOWN])
    names = ", ".join(name if count == 1 else f"{count} times {name}" for name, count in shown.items())
    more = queue.passed_by - sum(shown.values())
    return f"{names}, and {more} more" if more else names


def _changed(hop: Hop, ecn: str, out: LinkTransit) -> Iterator[Line]:
    """Changes that the switch made to the packet, such as ECN marks."""
    if out.ecn == "ce" and ecn != "ce":
        yield _INSIDE, "choice", "ECN: marked here"
    if "drained" in hop.noted:
        yield (_INSIDE, "choice", "Flowcut: a flowcut begins here, after a drain for congestion")
    if "moved" in hop.noted:
        yield _INSIDE, "choice", "Flowcut: the flow has left a withdrawn path here"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _us(time_ps: int) -> str:
    """A time to the picosecond, in microseconds, without zeros at its end."""
    text = f"{time_ps // _PS_PER_US:,}.{time_ps % _PS_PER_US:06}".rstrip("0").rstrip(".")
    return f"{text} µs"


def _when(time_ps: int) -> str:
    """A point in time, in microseconds, padded to a common width."""
    text = f"{time_ps // _PS_PER_US:,}.{time_ps % _PS_PER_US:06}"
    return f"{text:>{_TIME_COLUMNS - 3}} µs"
