# SPDX-License-Identifier: Apache-2.0
"""BMv2 JSON that p4c would not write: programs with some of their parts removed, doubled, exchanged or made absurd.

    mutants = Mutants(text)
    what, text = mutants.one(rng)

Mutations know the structure of JSON, not its meaning, but take what they put in mostly from other places of the
program, under the same key: names that exist, expressions that make sense elsewhere.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

HOSTILE = (
    "",
    "*/",
    '"; int x; //',
    "\\",
    "\n#error",
    "??/",
    "%s%n",
    "\x00",
    "é\u202e\U0001f4a5",
    "a" * 5000,
    "tr_program_entry",
    "__builtin_trap()",
)
"""Names that must not get into C text as they are."""
NUMBERS = (0, 1, -1, 2, 7, 9, 64, 65, 128, 129, 2**15, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, 2**4096, 1.5)
NESTED = 60
"""Expressions that a mutant puts around one."""

Place = tuple[Any, Any]
"""A list or object, and the index or key of something in it."""


class Mutants:
    """Mutants of one program."""

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._kinds: tuple[Callable[[random.Random, Place, dict[Any, list[Any]]], str], ...] = (
            self._removed,
            self._doubled,
            self._exchanged,
            self._taken,
            self._taken,
            self._taken,
            self._number,
            self._hostile,
            self._other_type,
            self._nested,
        )

    def one(self, rng: random.Random) -> tuple[str, bytes]:
        """A mutant, and what was done to it."""
        program = json.loads(self._text)
        done = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            places, by_key = found(program)
            # lists of equal things are long; every key gets its turn
            key = rng.choice(list(places))
            place = rng.choice(places[key])
            change = rng.choice(self._kinds)
            done.append(f"{key}: {change(rng, place, by_key)}")
        return "; ".join(done), json.dumps(program).encode()

    @staticmethod
    def _removed(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        del owner[at]
        return "removed"

    @staticmethod
    def _doubled(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        if not isinstance(owner, list):
            owner = owner[at]
            if not isinstance(owner, list) or not owner:
                return "left alone"
            at = rng.randrange(len(owner))
        owner.insert(at, json.loads(json.dumps(owner[at])))
        return "doubled"

    @staticmethod
    def _exchanged(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        other = rng.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
        owner[at], owner[other] = owner[other], owner[at]
        return f"exchanged with {other}"

    @staticmethod
    def _taken(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        key = at if isinstance(at, str) else "[]"
        owner[at] = json.loads(json.dumps(rng.choice(by_key[key])))
        return "from elsewhere"

    @staticmethod
    def _number(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        number = rng.choice(NUMBERS)
        owner[at] = hex(int(number)) if isinstance(owner[at], str) else number
        return f"{owner[at]!s:.20}"

    @staticmethod
    def _hostile(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        owner[at] = rng.choice(HOSTILE)
        return f"{owner[at]!r:.20}"

    @staticmethod
    def _other_type(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        owner[at] = rng.choice((None, True, [], {}, [owner[at]], {"type": "field", "value": owner[at]}, str(at)))
        return "of another type"

    @staticmethod
    def _nested(rng: random.Random, place: Place, by_key: dict[Any, list[Any]]) -> str:
        owner, at = place
        for _ in range(rng.choice((1, NESTED))):
            owner[at] = {"type": "expression", "value": {"op": "~", "left": None, "right": owner[at]}}
        return "nested"


def found(program: Any) -> tuple[dict[Any, list[Place]], dict[Any, list[Any]]]:
    """All places by their key, "[]" those in lists; all values by the same."""
    places: dict[Any, list[Place]] = {}
    values: dict[Any, list[Any]] = {}
    waiting = [program]
    while waiting:
        owner = waiting.pop()
        for at, value in owner.items() if isinstance(owner, dict) else enumerate(owner):
            key = at if isinstance(owner, dict) else "[]"
            if key == "source_info":
                continue
            places.setdefault(key, []).append((owner, at))
            values.setdefault(key, []).append(value)
            if isinstance(value, dict | list):
                waiting.append(value)
    return places, values
