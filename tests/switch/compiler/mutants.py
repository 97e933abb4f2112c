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
Change = Callable[[random.Random, Any, Any, list[Any]], str]
"""Changes what stands somewhere, with choices, the list or object, the index or key in it, and all values under that
key; what it did.
"""


def copied(value: Any) -> Any:
    return json.loads(json.dumps(value))


def removed(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    del owner[at]
    return "removed"


def doubled(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    """Something in a list, or in the list that stands there."""
    if not isinstance(owner, list):
        owner = owner[at]
        if not isinstance(owner, list) or not owner:
            return "left alone"
        at = rng.randrange(len(owner))
    owner.insert(at, copied(owner[at]))
    return "doubled"


def exchanged(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    other = rng.choice(list(owner) if isinstance(owner, dict) else range(len(owner)))
    owner[at], owner[other] = owner[other], owner[at]
    return f"exchanged with {other}"


def taken(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    owner[at] = copied(rng.choice(values))
    return "from elsewhere"


def number(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    chosen = rng.choice(NUMBERS)
    owner[at] = hex(int(chosen)) if isinstance(owner[at], str) else chosen
    return f"{chosen!s:.20}"


def hostile(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    owner[at] = rng.choice(HOSTILE)
    return f"{owner[at]!r:.20}"


def other_type(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    owner[at] = rng.choice((None, True, [], {}, [owner[at]], {"type": "field", "value": owner[at]}, str(at)))
    return "of another type"


def nested(rng: random.Random, owner: Any, at: Any, values: list[Any]) -> str:
    for _ in range(rng.choice((1, NESTED))):
        owner[at] = {"type": "expression", "value": {"op": "~", "left": None, "right": owner[at]}}
    return "nested"


# what comes from the program itself goes furthest into the compiler
CHANGES: tuple[Change, ...] = (
    taken,
    taken,
    taken,
    removed,
    doubled,
    exchanged,
    number,
    hostile,
    other_type,
    nested,
)


class Mutants:
    """Mutants of one program."""

    def __init__(self, text: bytes) -> None:
        self._text = text

    def mutant(self, rng: random.Random) -> tuple[str, bytes]:
        """A mutant: what was done to the program, and its text."""
        program = json.loads(self._text)
        done = []
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            places = places_by_key(program)
            # lists of equal things are long; every key gets its turn
            key = rng.choice(list(places))
            owner, at = rng.choice(places[key])
            values = [container[index] for container, index in places[key]]
            done.append(f"{key}: {rng.choice(CHANGES)(rng, owner, at, values)}")
        return "; ".join(done), json.dumps(program).encode()


def places_by_key(program: Any) -> dict[str, list[Place]]:
    """All places by their key; those in lists have the key "[]"."""
    places: dict[str, list[Place]] = {}
    waiting = [program]
    while waiting:
        owner = waiting.pop()
        for at, value in owner.items() if isinstance(owner, dict) else enumerate(owner):
            if at == "source_info":
                continue
            places.setdefault(at if isinstance(at, str) else "[]", []).append((owner, at))
            if isinstance(value, dict | list):
                waiting.append(value)
    return places
