# SPDX-License-Identifier: Apache-2.0
"""A server under fuzzed updates: each is refused with a right code and changes nothing, or accepted and read back.

fuzzed = Fuzzed(target, facts_of(schema), seed=1)
fuzzed.run(1000)
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol

from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tailrace.switch.compiler import SwitchProgram
from tailrace.switch.p4runtime.entities.schema import ABSENT, Schema
from tailrace.switch.p4runtime.state import ForwardingState
from tests.switch.p4runtime import states
from tests.switch.p4runtime.holdings import Facts, Key
from tests.switch.p4runtime.mutations import MUTATIONS, mutated
from tests.switch.p4runtime.oracle import Oracle
from tests.switch.p4runtime.updates import SMALL_ARRAY, Drawer

READ_EVERY = 200
"""Updates between two Reads of everything."""
MOST_IN_BATCH = 12


class Target(Protocol):
    """Who carries out Writes and Reads."""

    def write(self, batch: Sequence[p4r.Update], *, whole: bool) -> list[Code]:
        """What became of each update; `whole`: all or none."""
        ...

    def read(self, requests: Sequence[p4r.Entity]) -> Iterable[p4r.Entity]: ...


class InProcess:
    """The state of a pipeline, without Device and gRPC."""

    def __init__(self, program: SwitchProgram, schema: Schema) -> None:
        self.state: ForwardingState = states.new_state(program, schema)

    def write(self, batch: Sequence[p4r.Update], *, whole: bool) -> list[Code]:
        return [
            Code.OK if error is None else error.code
            for error in states.written(self.state, batch, whole=whole)
        ]

    def read(self, requests: Sequence[p4r.Entity]) -> list[p4r.Entity]:
        entities, results = states.answered(self.state, requests)
        assert not any(results), results
        return entities

    def close(self) -> None:
        self.state.context.switch.close()


def facts_of(schema: Schema) -> Facts:
    """P4Info, and what the compiled program takes away from it."""
    absent: set[object] = set(schema.absent)
    for table in schema.tables.values():
        absent |= {(table.id, action.id) for action in table.actions.values() if action.index == ABSENT}
        if table.const_default:
            absent.add(("const default", table.id))
    for profile in schema.profiles.values():
        absent |= {(profile.id, action.id) for action in profile.actions.values() if action.index == ABSENT}
    sizes = {table.id: table.size for table in schema.tables.values()}
    return Facts(schema.info, sizes, frozenset(absent))


class Fuzzed:
    """One pipeline, what it should hold, and updates at random."""

    def __init__(self, target: Target, facts: Facts, seed: int) -> None:
        self.target = target
        self.rng = random.Random(seed)
        self.facts = facts
        self.oracle = Oracle(facts, target.read(self._requests(())))
        self.drawer = Drawer(self.oracle, self.rng)
        self.updates = 0
        self.accepted = 0
        self.mutations: Counter[str] = Counter()
        self._names = list(MUTATIONS)

    def run(self, count: int) -> None:
        """So many updates, or a few more.

        Raises:
            AssertionError: the server does not do as it must.
        """
        until, next_read = self.updates + count, self.updates
        while self.updates < until:
            self._batch()
            if self.updates >= next_read:
                self.compare()
                next_read += READ_EVERY
        self.compare()

    def _draw(self) -> tuple[str, p4r.Update]:
        if self.rng.randrange(3) == 0:
            return mutated(self.rng, self.drawer, self._names)
        return "", self.drawer.update()

    def _batch(self) -> None:
        whole = self.rng.randrange(4) == 0
        drawn: list[tuple[str, p4r.Update]] = []
        allowed: list[set[Code]] = []
        self.oracle.journal.clear()
        for _ in range(self.rng.randint(1, MOST_IN_BATCH)):
            name, update = self._draw()
            drawn.append((name, update))
            self.mutations[name] += 1
            allowed.append(self.oracle.judge(update))
            if not allowed[-1]:
                self.oracle.apply(update)
                self.drawer.note(update)
            elif whole:
                break
        self.updates += len(drawn)
        codes = self.target.write([update for _, update in drawn], whole=whole)
        if whole and any(allowed):
            self.oracle.take_back()
            assert codes[:-1] == [Code.ABORTED] * (len(codes) - 1), codes
            drawn, allowed, codes = drawn[-1:], allowed[-1:], codes[-1:]
        for (name, update), expected, code in zip(drawn, allowed, codes, strict=True):
            self.accepted += code == Code.OK
            assert code in (expected or {Code.OK}), (
                f"{name or 'a right update'} was answered with {code.name}, "
                f"expected {sorted(expected_code.name for expected_code in expected) or 'OK'}:\n{update}"
            )

    def _requests(self, cells: Iterable[Key]) -> list[p4r.Entity]:
        """A Read of everything, of large arrays only some cells."""
        requests = [p4r.Entity() for _ in range(7)]
        for request in requests[:2]:
            request.table_entry.counter_data.SetInParent()
            request.table_entry.meter_config.SetInParent()
        requests[1].table_entry.is_default_action = True
        requests[2].action_profile_member.SetInParent()
        requests[3].action_profile_group.SetInParent()
        requests[4].packet_replication_engine_entry.SetInParent()
        requests[5].digest_entry.SetInParent()
        requests[6].value_set_entry.SetInParent()
        for which, owner in (("counter", "counters"), ("meter", "meters"), ("register", "registers")):
            for number, size in self.facts.arrays[owner].items():
                if size <= SMALL_ARRAY and number not in self.facts.absent:
                    requests.append(p4r.Entity())
                    setattr(getattr(requests[-1], f"{which}_entry"), f"{which}_id", number)
        for kind, *place in cells:
            request = p4r.Entity()
            message = getattr(request, str(kind))
            setattr(message, f"{str(kind).removesuffix('_entry')}_id", place[0])
            message.index.index = place[1]
            requests.append(request)
        return requests

    def compare(self) -> None:
        """Reads everything, and compares it with what should be there.

        Raises:
            AssertionError: it is something else.
        """
        cells = [key for key in self.oracle.entities if key[0] in _ARRAYS and self._is_large(key)]
        expected, actual = self.oracle.held(), dict[Key, bytes]()
        for entity in self.target.read(self._requests(cells)):
            key = self.oracle.key(entity)
            assert key not in actual, f"read twice: {entity}"
            actual[key] = entity.SerializeToString(deterministic=True)
        for key in expected.keys() | actual.keys():
            if expected.get(key) != actual.get(key):
                there = p4r.Entity.FromString(actual.get(key, b""))
                raise AssertionError(
                    f"{key}:\nexpected {self.oracle.entities.get(key)}\nread {there}\n"
                    f"{expected.get(key)!r}\n{actual.get(key)!r}"
                )

    def _is_large(self, key: Key) -> bool:
        owner = _ARRAYS[str(key[0])]
        number = key[1]
        assert isinstance(number, int)
        return self.facts.arrays[owner][number] > SMALL_ARRAY


_ARRAYS = {"counter_entry": "counters", "meter_entry": "meters", "register_entry": "registers"}
