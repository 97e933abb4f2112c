# SPDX-License-Identifier: Apache-2.0
"""Values shared by entries and packets, so that entries are hit: one small pool a header field, from the
seed.
"""

from __future__ import annotations

import random

from checks.conformance.program import CompiledProgram, Json

RANDOM_VALUES = 6


class Pools:
    """Interesting values by header type and field."""

    def __init__(self, program: CompiledProgram, seed: int) -> None:
        self._rng = random.Random(f"{seed}:{program.name}:pools")
        self._hints = program.hints.pools
        self._pools: dict[tuple[str, str], list[int]] = {}
        self._type_of = header_types(program.json)
        for header_type in program.json["header_types"]:
            for name, bits, *_ in header_type["fields"]:
                if isinstance(bits, int):
                    self._pools[header_type["name"], name] = self._make(header_type["name"], name, bits)

    def _make(self, header_type: str, name: str, bits: int) -> list[int]:
        hinted = self._hints.get(f"{header_type}.{name}")
        if hinted is not None:
            return [value & (1 << bits) - 1 for value in hinted]
        top = (1 << bits) - 1
        edges = {0, 1, top, top >> 1, 1 << bits - 1, 5 & top, 7 & top}
        return sorted(edges) + [self._rng.getrandbits(bits) for _ in range(RANDOM_VALUES)]

    def of_type(self, header_type: str, field: str) -> list[int]:
        return self._pools[header_type, field]

    def of_instance(self, header: str, field: str) -> list[int] | None:
        """The pool of a field of a header instance; None for metadata, which packets do not carry."""
        header_type = self._type_of.get(header)
        return None if header_type is None else self._pools.get((header_type, field))

    def hinted(self, name: str) -> list[int] | None:
        """Values the hints give for a key by its P4Info name, as "key:NAME"."""
        return self._hints.get(f"key:{name}")


def header_types(document: Json) -> dict[str, str]:
    """Header type by instance name, packet headers only."""
    return {h["name"]: h["header_type"] for h in document["headers"] if not h["metadata"]}
