# SPDX-License-Identifier: Apache-2.0
"""`tailrace trace --save` and `--replay`: saves a trace to a file, and replays its packet; prints traces."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tailrace.p4rt.connection import GrpcConnection
    from tailrace.p4rt.requests import TraceNeeds
    from tailrace.switch.replay.document import SavedTrace, TraceDocument, TraceOutcome, Unsure
    from tailrace.switch.trace.events import Trace
    from tailrace.switch.trace.text import Line

_STYLES = {
    "packet": "bold", "stage": "bold cyan", "table": "bold", "hit": "green", "miss": "yellow",
    "action": "magenta", "change": "blue", "extern": "cyan", "sent": "bold green", "drop": "bold red",
    "bad": "bold red", "choice": "yellow",
}  # fmt: skip


def print_lines(lines: Iterable[Line]) -> None:
    """Prints the lines of a trace, in colours if standard output is a terminal."""
    from rich.text import Text

    from tailrace.cli.output import console
    from tailrace.switch.trace.text import INDENT

    out = console()
    for depth, style, line in lines:
        out.print(Text(f"{INDENT * depth}{line}", _STYLES.get(style, "")), soft_wrap=True)


def print_json(value: object) -> None:
    """Prints a value as JSON."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")


class ReplayTarget(str, Enum):
    """The kind of switch that replays a saved trace."""

    NATIVE = "native"
    BMV2 = "bmv2"


_UNSURE: dict[Unsure, str] = {
    "time": "its program reads the time",
    "queue": "its program reads how long queues are",
    "random": "its program draws a random number",
    "meter": "a meter has coloured it",
    "selection": "one group has chosen several members for it",
}


def _unsure(document: TraceDocument) -> str:
    """Why another switch may treat the packet differently; empty if it should not."""
    return "; ".join(_UNSURE[reason] for reason in document.unsure)


def say(text: str) -> None:
    """Prints a note to standard error."""
    from tailrace.spec.text import printable

    sys.stderr.write(f"tailrace: {printable(text)}\n")


def write(file: Path, trace: Trace, needs: TraceNeeds, connection: GrpcConnection) -> None:
    """Writes a trace with all the state that a replay needs.

    Raises:
        SpecError: it cannot be saved, or the file cannot be written.
        SwitchError: the switch is gone.
    """
    from tailrace.p4rt.endpoint import run_at_once
    from tailrace.spec.atomic import write_output
    from tailrace.switch.replay.document import as_json, document_of

    document = document_of(trace, needs, run_at_once(connection.client.config()))
    write_output(file, as_json(document))
    reasons = _unsure(document)
    if reasons:
        say(f"{file}: BMv2 may treat the packet differently: {reasons}")


def repeat(file: Path, target: ReplayTarget, export: Path | None, *, full: bool, json: bool) -> None:
    """Replays a saved trace and reports whether the result is the same, or writes the trace as a test.

    Raises:
        SpecError: the file is invalid, or the format of the test cannot express the trace.
        FailedError: the result differs.
    """
    from tailrace.spec import SpecError
    from tailrace.spec.errors import FileError
    from tailrace.switch.replay.document import read

    saved = read(file)
    try:
        if export is not None:
            _export(saved, export)
        elif target is ReplayTarget.BMV2:
            _on_bmv2(saved, json=json)
        else:
            _natively(saved, full=full, json=json)
    except FileError:
        raise
    except SpecError as error:
        raise FileError(file, "", str(error)) from None


def _natively(saved: SavedTrace, *, full: bool, json: bool) -> None:
    from tailrace.cli.errors import FailedError
    from tailrace.switch.replay.document import outcome
    from tailrace.switch.replay.runner import run
    from tailrace.switch.trace.text import CUT, lines

    trace = run(saved)
    if json:
        print_json([trace])
    else:
        print_lines(lines(trace, full=full))
    if trace.cut:
        raise FailedError(CUT)
    _compare(saved, outcome(trace), reasons=True)


def _on_bmv2(saved: SavedTrace, *, json: bool) -> None:
    from tailrace.emulation.replay import run

    trace = run(saved)
    if json:
        print_json(trace.sent)
    else:
        print_lines(_frames(trace))
    _compare(saved, trace, reasons=False)


def _frames(trace_outcome: TraceOutcome) -> Iterable[Line]:
    for frame in trace_outcome.sent:
        yield 0, "sent", f"sent by port {frame.port}: {frame.frame}"
    if not trace_outcome.sent:
        yield 0, "drop", "nothing is sent"


def _compare(saved: SavedTrace, trace_outcome: TraceOutcome, *, reasons: bool) -> None:
    from tailrace.cli.errors import FailedError
    from tailrace.switch.replay.runner import differences

    different = list(differences(saved.document.expected, trace_outcome, reasons=reasons))
    if not different:
        say("as saved")
        return
    for line in different:
        say(line)
    why = _unsure(saved.document)
    raise FailedError(f"not as saved{f': {why}' if why else ''}")


def _export(saved: SavedTrace, file: Path) -> None:
    from tailrace.spec import SpecError
    from tailrace.spec.atomic import write_output
    from tailrace.switch.replay import ptf, stf

    kinds = {".stf": stf.test_source, ".py": ptf.test_source}
    make = kinds.get(file.suffix)
    if make is None:
        raise SpecError(f"--export {file}: expected a name that ends in {' or '.join(kinds)}")
    write_output(file, make(saved))
