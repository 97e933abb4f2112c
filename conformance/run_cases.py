# SPDX-License-Identifier: Apache-2.0
"""Test cases on the native switch and on simple_switch_grpc: what each does, and whether it is the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc

from conformance.bmv2 import Bmv2
from conformance.compare import Mask, normal
from conformance.native_server import NativeServer
from conformance.packets import Packet
from conformance.program import CompiledProgram, ConformanceError
from conformance.served import Served
from conformance.testcase import Case
from tailrace.bmv2.dataplane import Outputs
from tailrace.words.text import one_line


@dataclass(frozen=True, slots=True)
class Refused:
    """The switch did not get as far as the packet, or not to the end of what it does with it (`on_packet`),
    or its process `ended`.
    """

    reason: str
    on_packet: bool = False
    ended: bool = False


Outcome = Outputs | Refused


def run_case(switch: Served, case: Case) -> Outcome:
    """Push the pipeline anew, insert the entities, send the packet."""
    try:
        switch.client.set_pipeline()
    except grpc.RpcError as error:
        return Refused(one_line(f"pipeline refused: {error.details()}"))
    try:
        switch.client.insert(case.entities)
    except ConformanceError as error:
        return Refused(one_line(str(error)))
    try:
        return switch.send(Packet(case.port, case.packet))
    except ConformanceError as error:
        return Refused(one_line(str(error)), on_packet=True)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One test: what the switches did, and how they stand to each other. `varies`: they do not agree, but
    BMv2 did something else when it ran the test again, as it depends on time or chance.
    """

    case: Case
    native: Outcome
    bmv2: Outcome
    agree: bool
    varies: bool = False

    @property
    def native_passed(self) -> bool:
        """The native switch did what P4Testgen expects."""
        return not isinstance(self.native, Refused) and self.case.passed(self.native)

    @property
    def bmv2_passed(self) -> bool:
        """BMv2 did what P4Testgen expects."""
        return not isinstance(self.bmv2, Refused) and self.case.passed(self.bmv2)

    @property
    def both(self) -> bool:
        """The switches agree, but not with P4Testgen."""
        return self.agree and not self.native_passed

    @property
    def ended(self) -> bool:
        """BMv2's process ended, and the native switch did what P4Testgen expects."""
        return isinstance(self.bmv2, Refused) and self.bmv2.ended and self.native_passed

    @property
    def differ(self) -> bool:
        """The switches do not agree, nor does the test vary, nor did BMv2 end."""
        return not (self.agree or self.varies or self.ended)

    def as_json(self) -> dict[str, object]:
        """For testgen.json: frames in hexadecimal, entities as text."""
        return {
            "test": self.case.name,
            "agree": self.agree,
            "entities": [" ".join(str(entity).split()) for entity in self.case.entities],
            "port": self.case.port,
            "packet": self.case.packet.hex(),
            "expected": [[one.port, one.data.hex(), one.mask.hex()] for one in self.case.expected],
            "native": _shown(self.native),
            "bmv2": _shown(self.bmv2),
        }


def _shown(outcome: Outcome) -> object:
    return outcome.reason if isinstance(outcome, Refused) else [[port, data.hex()] for port, data in outcome]


def agree(case: Case, native: Outcome, bmv2: Outcome, mask: Mask) -> bool:
    """Whether both did what the test expects, or the same."""
    if isinstance(native, Refused) or isinstance(bmv2, Refused):
        return isinstance(native, Refused) and isinstance(bmv2, Refused)
    if case.passed(native) and case.passed(bmv2):
        return True
    return sorted(normal(native, mask)) == sorted(normal(bmv2, mask))


class Both:
    """A context with both switches; a simple_switch_grpc that ends, or never comes to rest, is started again
    for the next test. `options` are the C compiler's for the native switch.
    """

    def __init__(self, program: CompiledProgram, log: Path, options: Sequence[str] = ()) -> None:
        self.program, self.log = program, log
        self.native = NativeServer(program, options)
        self.bmv2: Bmv2 | None = None

    def __enter__(self) -> Both:
        self.native.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_bmv2()
        self.native.__exit__()

    def _end_bmv2(self) -> None:
        if self.bmv2 is not None:
            self.bmv2.__exit__()
            self.bmv2 = None

    def run(self, case: Case) -> Verdict:
        """Run a test on both."""
        native, bmv2 = run_case(self.native, case), self._on_bmv2(case)
        same = agree(case, native, bmv2, self.program.hints.mask)
        varies = not same and not isinstance(bmv2, Refused) and self._on_bmv2(case) != bmv2
        return Verdict(case, native, bmv2, same, varies)

    def _on_bmv2(self, case: Case) -> Outcome:
        if self.bmv2 is None:
            self.bmv2 = Bmv2(self.program, self.log).__enter__()
        outcome = run_case(self.bmv2, case)
        if isinstance(outcome, Refused):
            ended = self.bmv2.ended()
            if ended or outcome.on_packet:
                self._end_bmv2()
            if ended:
                return Refused("simple_switch_grpc ended", ended=True)
        return outcome
