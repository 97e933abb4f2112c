# SPDX-License-Identifier: Apache-2.0
"""What a controller and hosts do to a switch in a run, as files of records that the fuzz drivers read (fuzz.h).

    python -m tests.switch.fuzz.stories

writes `corpus/PROGRAM.story` for every compiled program: the calls that filled one switch, the program's own entries
first, and for programs of p4src, with which it runs an experiment, some frames of every kind that was on the wires.
"""

from __future__ import annotations

import json
import shlex
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

from scapy.utils import RawPcapNgReader

from tailrace.api.experiment import experiment
from tailrace.api.run import run
from tailrace.experiments.plan.plan import plan
from tailrace.spec.errors import SpecError
from tailrace.switch.compiler import load_program
from tailrace.switch.core import V1ModelSwitch, lib
from tests.switch.fuzz.builds import CORPUS, PROGRAMS, ROOT

RUNS = ROOT / "tests" / "traces" / "hashes.json"
"""The commands of recorded runs, among which is every program of p4src."""

_FRAME, _INSERT, _DEFAULT, _MEMBER, _GROUP, _MULTICAST, _CLONE = range(7)  # enum fuzz_kind
_NO_TARGET = 0xFFFFFFFF
MOST_FRAMES = 25
MOST_FRAME_BYTES = 200
MOST_CALLS = 150

Record = tuple[int, bytes]


class Recorder:
    """Stands before the functions of the core and notes, by switch, the calls that filled it."""

    def __init__(self, functions: Any) -> None:
        self._functions = functions
        self.filled: dict[int, list[Record]] = {}

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._functions, name)
        note: Callable[..., Record] | None = getattr(type(self), f"_{name}", None)
        if note is None:
            return function

        def noted(handle: Any, *arguments: Any) -> int:
            result: int = function(handle, *arguments)
            if result >= 0:
                self.filled.setdefault(address(handle), []).append(note(*arguments))
            return result

        return noted

    def tr_switch_load(self, handle: Any, entry: Any) -> int:
        self.filled[address(handle)] = []
        loaded: int = self._functions.tr_switch_load(handle, entry)
        return loaded

    def tr_switch_exchange(self, switch: Any, other: Any) -> None:
        records = [self.filled.pop(address(handle), []) for handle in (switch, other)]
        self.filled[address(other)], self.filled[address(switch)] = records
        self._functions.tr_switch_exchange(switch, other)

    @staticmethod
    def _tr_table_insert(
        table: int, key: bytes, mask: bytes, prefix: int, priority: int, target: Any, *_: int
    ) -> Record:
        return _INSERT, targeted(table, prefix, priority, target) + key + mask

    @staticmethod
    def _tr_table_default(table: int, target: Any) -> Record:
        return _DEFAULT, targeted(table, 0, 0, target)

    @staticmethod
    def _tr_member_add(profile: int, target: Any) -> Record:
        return _MEMBER, targeted(profile, 0, 0, target)

    @staticmethod
    def _tr_group_set(profile: int, handle: int, members: Sequence[int], _count: int) -> Record:
        return _GROUP, numbers(profile, handle, 0, *members)

    @staticmethod
    def _tr_mcast_set(group: int, replicas: Any, _count: int) -> Record:
        return _MULTICAST, numbers(group, 0, 0, *(number for pair in replicas for number in pair))

    @staticmethod
    def _tr_clone_set(session: int, replicas: Any, _count: int, service: int, length: int) -> Record:
        return _CLONE, numbers(session, service, length, *(number for pair in replicas for number in pair))


def address(handle: Any) -> int:
    """A switch as a number."""
    return int(lib.ffi.cast("uintptr_t", handle))


def numbers(*values: int) -> bytes:
    """As records have them."""
    return struct.pack(f"<{len(values)}I", *values)


def targeted(place: int, prefix: int, priority: int, target: Any) -> bytes:
    """The numbers of a call with a target, and the target's data."""
    if isinstance(target, list):
        kind, number, data, count = target[0]
    elif target:
        kind, number, data, count = target[0].kind, target[0].id, target[0].data, target[0].limbs
    else:
        kind, number, data, count = _NO_TARGET, 0, (), 0
    limbs = lib.ffi.unpack(data, count) if count else []
    return numbers(place, prefix, priority, kind, number, count) + struct.pack(f"<{count}Q", *limbs)


def runs() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Program and keys of the recorded runs."""
    for words in json.loads(RUNS.read_text("utf-8")):
        keys: dict[str, Any] = {}
        given = iter(shlex.split(words))
        for option in given:
            key = option.removeprefix("--").replace("-", "_")
            value = next(given)
            keys[key] = [*keys.get(key, []), value] if key == "fault" else value
        keys["seed"] = int(keys["seed"])
        try:
            yield plan(experiment(**keys), "virtual").job.scheme.program, keys
        except (TypeError, SpecError):  # an option that is no key, or has another name as one
            continue


def frames(capture: Path) -> Iterator[bytes]:
    """Some of every kind: the first of those with the same length, EtherType, ports and opcode."""
    seen: set[tuple[object, ...]] = set()
    with RawPcapNgReader(str(capture)) as reader:
        for data, _ in reader:
            kind = (min(len(data), 100), data[12:15], data[23:24], data[36:38], data[42:43])
            if kind not in seen:
                seen.add(kind)
                yield data[:MOST_FRAME_BYTES]


def of_run(keys: Mapping[str, Any]) -> list[Record]:
    """The calls that filled the switch that had the most of them, and frames that any one saw."""
    recorder = Recorder(lib.load())
    with tempfile.TemporaryDirectory() as folder, mock.patch.object(lib, "load", lambda: recorder):
        run(
            out=folder,
            pcap=True,
            **{key: value for key, value in keys.items() if key != "target"},
            target="virtual",
        )
        captured = list(frames(Path(folder) / "pcap" / "all.pcapng"))
    calls = max(recorder.filled.values(), key=len)
    step = max(1, len(captured) // MOST_FRAMES)
    return [*thinned(calls), *((_FRAME, frame) for frame in captured[::step][:MOST_FRAMES])]


def of_program(path: Path) -> list[Record]:
    """What the program itself puts into a switch."""
    recorder = Recorder(lib.load())
    with mock.patch.object(lib, "load", lambda: recorder):
        V1ModelSwitch(load_program(path.read_bytes())).close()
    return next(iter(recorder.filled.values()), [])


def thinned(calls: list[Record]) -> list[Record]:
    """The same with fewer insertions, so that each table keeps some."""
    kept, of_table = [], dict[bytes, int]()
    inserted = sum(kind == _INSERT for kind, _ in calls)
    for kind, data in calls:
        table = data[:4] if kind == _INSERT else b""
        of_table[table] = of_table.get(table, 0) + 1
        if kind != _INSERT or inserted <= MOST_CALLS or of_table[table] <= MOST_CALLS // 5:
            kept.append((kind, data))
    return kept


def main() -> None:
    """Writes all stories."""
    CORPUS.mkdir(exist_ok=True)
    recorded: dict[str, list[Record]] = {}
    for program, keys in runs():
        if program not in recorded and program in PROGRAMS:
            recorded[program] = of_run(keys)
    for name, path in PROGRAMS.items():
        records = recorded.get(name) or of_program(path)
        data = b"".join(struct.pack("<BH", kind, len(octets)) + octets for kind, octets in records)
        (CORPUS / f"{name}.story").write_bytes(data)
        print(f"{name}: {len(records)} records, {len(data)} bytes", flush=True)


if __name__ == "__main__":
    main()
