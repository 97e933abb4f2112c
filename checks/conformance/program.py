# SPDX-License-Identifier: Apache-2.0
"""A compiled test program of the harness: BMv2 JSON, P4Info, and our hints."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from google.protobuf import text_format

from tailrace.p4rt.messages import p4i
from tailrace.spec.text import one_line

Json = dict[str, Any]
HINTS = Path(__file__).parent / "hints"


class ConformanceError(Exception):
    """A comparison cannot be made; the message is one line for the user."""


class Hints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Data for the generator that the compiled program does not contain.

    pools: "header_type.field" -> values to try, beside random values
    params: parameter -> values
    mask: output byte ranges (offset, length) that depend on time or chance
    multicast, clones: id -> [port, instance]
    stateful: whether the result of a packet depends on earlier packets
    entries: number of entries by table
    meters: name -> [cir, cburst, pir, pburst]
    value_sets: name -> values of the whole key
    ports: ingress ports
    timing: registers that depend on the clock; only whether they were written is compared
    """

    pools: dict[str, list[int]] = {}
    params: dict[str, list[int]] = {}
    mask: list[tuple[int, int]] = []
    multicast: dict[int, list[tuple[int, int]]] = {}
    clones: dict[int, list[tuple[int, int]]] = {}
    stateful: bool = False
    entries: dict[str, int] = {}
    meters: dict[str, list[int]] = {}
    value_sets: dict[str, list[int]] = {}
    ports: list[int] = msgspec.field(default_factory=lambda: list(range(8)))
    timing: list[str] = []

    @classmethod
    def load(cls, name: str) -> Hints:
        """Read `hints/NAME.json`; a program without the file has no hints."""
        path = HINTS / f"{name}.json"
        if not path.is_file():
            return cls()
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except msgspec.DecodeError as error:
            raise ConformanceError(f"{path.name}: {error}") from error


def has_hints(name: str) -> bool:
    return (HINTS / f"{name}.json").is_file()


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """One program with all that the generator and both switches need."""

    name: str
    json_bytes: bytes
    json: Json
    p4info: p4i.P4Info
    hints: Hints

    @property
    def sha256(self) -> str:
        """Digest of the compiled JSON."""
        return hashlib.sha256(self.json_bytes).hexdigest()

    @property
    def names_in_json(self) -> set[str]:
        """Names of the tables, counters and meters in the JSON; P4Info also has those that p4c removed."""
        tables = [table for pipeline in self.json["pipelines"] for table in pipeline["tables"]]
        return {item["name"] for item in (*tables, *self.json["counter_arrays"], *self.json["meter_arrays"])}


def load_programs(build_dir: Path, only: str | None = None) -> list[CompiledProgram]:
    """All programs compiled into `build_dir`, sorted by name. Raises ConformanceError when `only` is not
    there.
    """
    programs = []
    for path in sorted(build_dir.glob("*.json")):
        if only is None or path.stem == only:
            octets = path.read_bytes()
            try:
                p4info = text_format.Parse(path.with_suffix(".p4info.txtpb").read_bytes(), p4i.P4Info())
                program = json.loads(octets)
            except (ValueError, text_format.ParseError) as error:
                raise ConformanceError(f"{path}: {one_line(str(error))}") from error
            programs.append(CompiledProgram(path.stem, octets, program, p4info, Hints.load(path.stem)))
    if not programs:
        raise ConformanceError(f"{build_dir}: no compiled program" + (f" called {only!r}" if only else ""))
    return programs
