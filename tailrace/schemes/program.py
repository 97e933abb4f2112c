# SPDX-License-Identifier: Apache-2.0
"""Any compiled P4 program, with the entries of its user's files and no others.

A switch's program is the key json=, unless a p4lang topology.json names another one for it (`program`). Its
entries are in the file or folder of the key entries=, or in the files that topology.json names
(`cli_input`, `runtime_json`). The traffic manager limits the queues, as in simple_switch; nothing else marks
or drops packets. No controller changes the entries, also when links fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec

from tailrace.p4rt import programs
from tailrace.p4rt.entry_files import Updates, read_files
from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.intent import SwitchIntent
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.resolved import Resolved, SchemeContext
from tailrace.spec import Spec, SpecError, keys
from tailrace.topology import Switch, Topology

NAMES = ("{}-runtime.json", "{}.json", "{}-runtime.txtpb", "{}.txtpb", "{}-commands.txt", "{}.txt")
"""Names of a switch's file in a folder of entries."""

DEPTH_PACKETS = 64
"""simple_switch's limit of a queue."""

TICK_NS = 1_000
"""The unit of simple_switch's timestamps."""

_OURS = ("kmin", "kmax", "pmax", "seed", "guard", "control")
"""Keys that act by entries of this project's programs."""

_CACHED = 256
_MOST_DEPTH = 1 << 24
_FILE = "FILE.json"


class SwitchFiles(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one switch. program: as `p4rt.programs.reference` names it; entries: paths."""

    program: str
    entries: tuple[str, ...] = ()


@scheme
class ProgramConfig(SchemeConfig, frozen=True, kw_only=True):
    """A user's program and entries."""

    name: ClassVar[str] = "program"
    title: ClassVar[str] = "program"
    about: ClassVar[str] = "a compiled P4 program of your own with its entries; nothing is added to them"
    json: Annotated[
        str | None,
        keys.text("json", "compiled program of every switch (BMv2 JSON)", _FILE, absent="topology.json's"),
    ] = None
    p4info: Annotated[
        str | None, keys.text("p4info", "P4Info of json=, as text", "FILE", absent="beside the program")
    ] = None
    entries: Annotated[
        str | None,
        keys.text(
            "entries",
            "file of entries for every switch, or folder with a file for each switch",
            "FILE|DIR",
            absent="topology.json's",
        ),
    ] = None
    depth: Annotated[
        int,
        keys.integer("depth", "limit of each queue in packets; 0: no limit", least=0, most=_MOST_DEPTH),
    ] = DEPTH_PACKETS
    tick_ns: Annotated[int, keys.time("tick", "unit of the program's timestamps", least=1)] = TICK_NS

    @property
    def limits_queues(self) -> bool:
        """See SchemeConfig."""
        return True

    def checked(self, spec: Spec) -> ProgramConfig:
        """See SchemeConfig."""
        for key in _OURS:
            if key in spec.options:
                raise SpecError(f"{spec.title}: {key}: the program alone decides this; leave it out")
        if self.p4info is not None and self.json is None:
            raise spec.refused("p4info", "together with json=")
        if self.queue_limit_bytes is not None and "depth" in spec.options:
            raise SpecError(f"{spec.title}: expected either depth= (packets) or queue= (bytes)")
        return self

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedProgram:
        files = {switch.name: self._files_of(topology, switch) for switch in topology.switches}
        if self.entries is not None and not any(each.entries for each in files.values()):
            names = ", ".join(name.format(topology.switches[0].name) for name in NAMES[:2])
            raise SpecError(f"scheme program: entries: {self.entries} has no file such as {names}")
        for name, each in files.items():
            try:
                updates_of(each)
            except P4ProgramError as error:
                raise SpecError(f"scheme program: {name}: {error}") from error
        return self.resolved(
            ResolvedProgram,
            topology,
            context,
            program=files[topology.switches[0].name].program,
            files=files,
            depth_packets=self.depth if self.queue_limit_bytes is None else 0,
        )

    def common(self, topology: Topology, context: SchemeContext) -> dict[str, Any]:
        """See SchemeConfig."""
        none: dict[str, Any] = {"red": None, "control_share": 0.0, "source_guard": False}
        return super().common(topology, context) | none | {"queue_limit_bytes": self.queue_limit_bytes or 0}

    def files(self, topology: Topology) -> tuple[Path, ...]:
        """See SchemeConfig."""
        paths: dict[Path, None] = {}
        for switch in topology.switches:
            each = self._files_of(topology, switch)
            json, _, info = each.program.partition(":")
            paths |= dict.fromkeys(programs.files(Path(json), Path(info) if info else None))
            paths |= dict.fromkeys(map(Path, each.entries))
        return tuple(paths)

    def _files_of(self, topology: Topology, switch: Switch) -> SwitchFiles:
        if switch.program:
            program = programs.reference(_beside(topology, switch.program))
        elif self.json is not None:
            info = None if self.p4info is None else Path(self.p4info).absolute()
            program = programs.reference(Path(self.json).absolute(), info)
        else:
            raise SpecError(f"scheme program: no program for {switch.name}; expected json={_FILE}")
        return SwitchFiles(program=program, entries=tuple(map(str, self._entries_of(topology, switch))))

    def _entries_of(self, topology: Topology, switch: Switch) -> list[Path]:
        if self.entries is None:
            return [_beside(topology, name) for name in switch.entries]
        path = Path(self.entries).absolute()
        if not path.is_dir():
            return [path]
        present = [each for name in NAMES if (each := path / name.format(switch.name)).exists()]
        if len(present) > 1:
            raise SpecError(f"scheme program: entries: {present[0]} and {present[1]} are of one switch")
        return present


class ResolvedProgram(Resolved, frozen=True, kw_only=True):
    """A user's program on a network.

    depth_packets: limit of a queue in packets; 0: none
    tick_ns: unit of the program's timestamps, at the time scale, so that the program's times scale, too
    """

    files: dict[str, SwitchFiles]
    depth_packets: int
    tick_ns: int

    @property
    def is_foreign(self) -> bool:
        """See Resolved."""
        return True

    def programs(self, topology: Topology) -> dict[str, programs.P4Program]:
        """See Resolved."""
        return {switch.name: programs.load(self.files[switch.name].program) for switch in topology.switches}

    def intents(self) -> Iterator[SwitchIntent]:
        """The program and the updates of every switch."""
        for name, each in self.files.items():
            yield SwitchIntent(name, each.program, (), updates_of(each))

    @property
    def notes(self) -> tuple[str, ...]:
        """See Resolved."""
        return tuple(dict.fromkeys(note for each in self.files.values() for note in updates_of(each).notes))


def updates_of(files: SwitchFiles) -> Updates:
    """The updates in the files of a switch; raises SpecError or P4ProgramError if a file is invalid."""
    paths = tuple(map(Path, files.entries))
    program = programs.load(files.program)
    return _updates(program, paths, tuple(map(programs.stamp, paths)))


@lru_cache(_CACHED)
def _updates(program: programs.P4Program, paths: tuple[Path, ...], _stamps: object) -> Updates:
    # the stamps are part of the cache's key: a file that has changed is read anew
    return read_files(paths, program)


def _beside(topology: Topology, name: str) -> Path:
    """The path of a file that topology.json names: relative to the present folder, as the tutorials' tool
    reads it, or else to the folder of topology.json or the folder above.
    """
    folder = Path(topology.kind).absolute().parent
    candidates = [Path(name).absolute(), folder / name, folder.parent / name]
    return next((path for path in candidates if path.exists()), candidates[0])
