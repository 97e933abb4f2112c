# SPDX-License-Identifier: Apache-2.0
"""Packets that take every path of a parser: headers built by walking its states, then damaged in many ways.

A walk starts at `start` and makes a header for each extract (fields from the pools). At each select it mostly
sets the key to that of a transition chosen at random. If a key is computed from the packet, the walk follows
the value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from checks.conformance.chunk import Chunk, Node, UnknownValueError, evaluate, repair
from checks.conformance.control import ControlMaker, Pools, header_types
from checks.conformance.program import CompiledProgram, Json
from tailrace.p4rt.messages import p4r

MAX_STATES = 24
MAX_HEADER_BYTES = 600


@dataclass(slots=True)
class ParserWalk:
    """State of one walk through the parser: the headers made so far (`chunks`), the latest by name, metadata
    fields (`scalars`), the number of `used` elements by stack, and the results of lookaheads, as
    (bits, value) by bit offset (`peeked`).
    """

    chunks: list[Chunk] = field(default_factory=list)
    latest: dict[str, Chunk] = field(default_factory=dict)
    scalars: dict[tuple[str, str], int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    peeked: dict[int, tuple[int, int]] = field(default_factory=dict)

    def made_bytes(self) -> int:
        """Bytes made so far."""
        return sum(chunk.bits for chunk in self.chunks) // 8


@dataclass(frozen=True, slots=True)
class Packet:
    """A frame and the port it enters by."""

    port: int
    data: bytes


class PacketMaker:
    """Endless stream of packets for one program; the same seed makes the same stream."""

    def __init__(self, program: CompiledProgram, pools: Pools, seed: int) -> None:
        self.rng = random.Random(f"{seed}:{program.name}:packets")
        self.pools = pools
        self.types: dict[str, Json] = {t["name"]: t for t in program.json["header_types"]}
        self.type_of = header_types(program.json)
        self.stack_type = {s["name"]: s["header_type"] for s in program.json["header_stacks"]}
        unions = {u["name"]: u for u in program.json.get("header_union_types", [])}
        self.union_members = {
            s["name"]: dict(unions[s["union_type"]]["headers"])
            for s in program.json.get("header_union_stacks", [])
        }
        parser = program.json["parsers"][0]
        self.start = parser["init_state"]
        self.states: dict[str, Json] = {state["name"]: state for state in parser["parse_states"]}
        self.value_sets = program.hints.value_sets
        self.ports = program.hints.ports

    def __iter__(self) -> Iterator[Packet]:
        while True:
            yield Packet(self.rng.choice(self.ports), self._damage(self._build()))

    def _build(self) -> bytes:
        walk = ParserWalk()
        state: str | None = self.start
        for _ in range(MAX_STATES):
            if state is None or walk.made_bytes() > MAX_HEADER_BYTES:
                break
            for operation in self.states[state]["parser_ops"]:
                self._operation(walk, operation)
            state = self._next(walk, self.states[state])
        payload = self._payload()
        if walk.chunks and self.rng.random() < 0.7:
            repair(walk.chunks, payload)
        return b"".join(chunk.encode() for chunk in walk.chunks) + payload

    def _payload(self) -> bytes:
        roll = self.rng.random()
        size = 0 if roll < 0.1 else self.rng.randrange(65) if roll < 0.95 else self.rng.randrange(1400)
        return self.rng.randbytes(size)

    # ---- parser operations ----

    def _operation(self, walk: ParserWalk, operation: Json) -> None:
        name, parameters = operation["op"], operation["parameters"]
        if name in ("extract", "extract_VL"):
            self._extract(walk, parameters)
        elif name == "advance":
            self._skip(walk, parameters[0])
        elif name == "set" and parameters[0]["type"] == "field":
            target = (parameters[0]["value"][0], parameters[0]["value"][1])
            try:
                walk.scalars[target] = evaluate(parameters[1], lambda leaf: self._read(walk, leaf))
            except (UnknownValueError, ValueError):
                walk.scalars.pop(target, None)

    def _extract(self, walk: ParserWalk, parameters: list[Json]) -> None:
        operand, kind = parameters[0]["value"], parameters[0]["type"]
        if kind == "regular":
            name, header_type = operand, self.type_of[operand]
        elif kind == "stack":
            name, header_type = operand, self.stack_type[operand]
            walk.used[operand] = walk.used.get(operand, 0) + 1
        else:
            name, header_type = operand[0], self.union_members[operand[0]][operand[1]]
        varbit_bits = 0
        if len(parameters) > 1:
            try:
                varbit_bits = evaluate(parameters[1], lambda leaf: self._read(walk, leaf))
            except (UnknownValueError, ValueError):
                varbit_bits = 8 * self.rng.randrange(8)
            varbit_bits = varbit_bits if 0 <= varbit_bits <= 2048 and varbit_bits % 8 == 0 else 0
        chunk = self._make(header_type, varbit_bits)
        self._apply_peeked(walk, chunk)
        walk.chunks.append(chunk)
        walk.latest[name] = chunk
        if kind == "stack":
            walk.latest[f"{name}[{walk.used[name] - 1}]"] = chunk

    def _make(self, header_type: str, varbit_bits: int) -> Chunk:
        widths, values = [], {}
        for name, bits, *_ in self.types[header_type]["fields"]:
            if isinstance(bits, int):
                widths.append((name, bits))
                pool = self.pools.of_type(header_type, name)
                values[name] = (
                    self.rng.choice(pool) if self.rng.random() < 0.75 else self.rng.getrandbits(bits)
                )
            elif varbit_bits:
                widths.append((name, varbit_bits))
                values[name] = self.rng.getrandbits(varbit_bits)
        return Chunk(header_type, widths, values)

    def _skip(self, walk: ParserWalk, amount: Json) -> None:
        try:
            bits = evaluate(amount, lambda leaf: self._read(walk, leaf))
        except (UnknownValueError, ValueError):
            bits = 8
        if 0 < bits <= 2048 and bits % 8 == 0:
            chunk = Chunk("", [("skipped", bits)], {"skipped": self.rng.getrandbits(bits)})
            self._apply_peeked(walk, chunk)
            walk.chunks.append(chunk)

    def _read(self, walk: ParserWalk, leaf: Node) -> int:
        kind, value = leaf["type"], leaf["value"]
        if kind == "lookahead":
            offset, width = value
            key = walk.made_bytes() * 8 + offset
            walk.peeked[key] = (width, self.rng.getrandbits(width))
            return walk.peeked[key][1]
        if kind in ("field", "stack_field"):
            chunk = walk.latest.get(value[0])
            if chunk is not None and value[1] in chunk.values:
                return chunk.values[value[1]]
            if (value[0], value[1]) in walk.scalars:
                return walk.scalars[value[0], value[1]]
        raise UnknownValueError(kind)

    def _apply_peeked(self, walk: ParserWalk, chunk: Chunk) -> None:
        """Copy the bits that a lookahead has read into the chunk that is about to be added."""
        start = walk.made_bytes() * 8
        total = chunk.bits
        for key, (width, value) in list(walk.peeked.items()):
            if start <= key and key + width <= start + total:
                number = int.from_bytes(chunk.encode(), "big")
                shift = total - (key - start) - width
                number = number & ~(((1 << width) - 1) << shift) | value << shift
                for name, bits in reversed(chunk.widths):
                    chunk.values[name] = number & (1 << bits) - 1
                    number >>= bits
        walk.peeked.clear()

    # ---- transitions ----

    def _next(self, walk: ParserWalk, state: Json) -> str | None:
        transitions, key = state["transitions"], state["transition_key"]
        if not key:
            return transitions[0]["next_state"] if transitions else None
        widths = [self._width(part) for part in key]  # None: not a field or lookahead
        if None not in widths and self.rng.random() < 0.8:
            self._force(walk, key, [width or 0 for width in widths], self.rng.choice(transitions))
        try:
            values = [evaluate(part, lambda leaf: self._read(walk, leaf)) for part in key]
        except (UnknownValueError, ValueError):
            chosen: str | None = self.rng.choice(transitions)["next_state"]
            return chosen
        return self._follow(
            transitions,
            [width or 8 * ((v.bit_length() + 7) // 8) for width, v in zip(widths, values, strict=True)],
            values,
        )

    def _follow(self, transitions: list[Json], widths: list[int], values: list[int]) -> str | None:
        """The next state for these values of the key fields, each of which is padded to whole bytes."""
        number = 0
        for width, value in zip(widths, values, strict=True):
            number = number << 8 * ((width + 7) // 8) | value
        for transition in transitions:
            next_state: str | None = transition["next_state"]
            if transition["type"] == "default":
                return next_state
            if transition["type"] == "parse_vset":
                if number in self.value_sets.get(transition["value"], []):
                    return next_state
                continue
            mask = int(transition["mask"], 16) if transition["mask"] else -1
            if number & mask == int(transition["value"], 16) & mask:
                return next_state
        return None

    def _width(self, part: Json) -> int | None:
        """Width in bits of a part of the key; None unless the part is a lookahead or a header field."""
        if part["type"] == "lookahead":
            return int(part["value"][1])
        if part["type"] in ("field", "stack_field"):
            name, field_name = part["value"]
            header_type = self.type_of.get(name) or self.stack_type.get(name)
            for known, bits, *_ in self.types[header_type]["fields"] if header_type else []:
                if known == field_name and isinstance(bits, int):
                    return bits
        return None

    def _force(self, walk: ParserWalk, key: list[Json], widths: list[int], transition: Json) -> None:
        """Sets the key's fields to match `transition`, which is taken if no earlier transition matches."""
        if transition["type"] == "default":
            return
        if transition["type"] == "parse_vset":
            values = self.value_sets.get(transition["value"])
            if not values:
                return
            value, mask = self.rng.choice(values), -1
        else:
            value = int(transition["value"], 16)
            mask = int(transition["mask"], 16) if transition["mask"] else -1
        for part, width in reversed(list(zip(key, widths, strict=True))):
            padded, top = 8 * ((width + 7) // 8), (1 << width) - 1
            chunk = walk.latest.get(part["value"][0]) if part["type"] != "lookahead" else None
            if chunk is not None:
                old = chunk.values[part["value"][1]]
                chunk.values[part["value"][1]] = (old & ~mask | value & mask) & top
            value >>= padded
            mask >>= padded

    # ---- damage ----

    def _damage(self, data: bytes) -> bytes:
        roll = self.rng.random()
        if roll < 0.70 and data:
            return data
        if roll < 0.80 and data:
            return data[: self.rng.randint(1, len(data))]
        if roll < 0.90 and data:
            damaged = bytearray(data)
            for _ in range(self.rng.randint(1, 4)):
                damaged[self.rng.randrange(len(damaged))] ^= 1 << self.rng.randrange(8)
            return bytes(damaged)
        if roll < 0.93:
            return data + self.rng.randbytes(self.rng.randrange(1, 400))
        if roll < 0.97:
            return self.rng.randbytes(self.rng.randint(1, 128))
        if roll < 0.98:
            return self.rng.randbytes(self.rng.randint(1400, 2000))
        return (data + bytes(60))[: self.rng.randint(1, 14)]


def generate(program: CompiledProgram, seed: int) -> tuple[list[p4r.Update], Iterator[Packet]]:
    """The updates of a controller, and endless packets that match entries; a seed always gives the same."""
    pools = Pools(program, seed)
    return ControlMaker(program, pools, seed).updates(), iter(PacketMaker(program, pools, seed))
