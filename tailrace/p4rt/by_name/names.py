# SPDX-License-Identifier: Apache-2.0
"""Name lookup in P4Info: full names, aliases, and unique suffixes of full names.

A full name (`ingress.acl`, `hdr.eth.src`) always identifies its object. An alias in P4Info, or a suffix of a
full name (`acl`, `eth.src`), identifies its object if it is unique. `isValid()` and p4c's older `$valid$` are
the same name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Generic, Protocol, TypeVar

from tailrace.p4rt.messages import p4i
from tailrace.spec import SpecError
from tailrace.spec.suggest import expected

_T = TypeVar("_T")
_SHOWN = 80
_MOST_SHOWN = 4


class NameIndex(Generic[_T]):
    """Objects of one kind, by name and by id."""

    def __init__(self, kind: str, objects: Iterable[tuple[int, str, str, _T]]) -> None:
        """`objects`: id, full name, alias ("": none) and object of each; `kind`: its name in messages."""
        self._kind = kind
        self.by_id: dict[int, _T] = {}
        self._full: dict[int, str] = {}
        self._alias: dict[int, str] = {}
        self._meanings: dict[str, list[int]] = {}  # results of `_find`
        self._ids_by_name: dict[str, list[int]] = defaultdict(list)
        self._ids_by_alias: dict[str, list[int]] = defaultdict(list)
        for object_id, name, alias, item in objects:
            self.by_id[object_id] = item
            self._full[object_id], self._alias[object_id] = name, alias
            self._ids_by_name[_normalised(name)].append(object_id)
            self._ids_by_alias[_normalised(alias)].append(object_id)

    def id_of(self, text: str) -> int:
        """The id of a name. Raises SpecError if no object or several objects match."""
        ids = self._meanings.get(text)
        if ids is None:
            ids = self._meanings[text] = self._find(_normalised(text))
        if len(ids) == 1:
            return ids[0]
        if not ids:
            shown = [self.shown(object_id) for object_id in self.by_id]
            raise SpecError(f"no {self._kind} named {text[:_SHOWN]!r}; {expected(text, shown)}")
        full = ", ".join(self._full[object_id] for object_id in ids[:_MOST_SHOWN])
        raise SpecError(f"{self._kind} {text[:_SHOWN]!r} matches {len(ids)}: {full}; give the full name")

    def meanings(self, text: str) -> list[int]:
        """The ids of all objects that a name matches, in P4Info's order."""
        return self._find(_normalised(text))

    def named(self, text: str) -> _T:
        """The object of a name. Raises SpecError like `id_of`."""
        return self.by_id[self.id_of(text)]

    def _find(self, text: str) -> list[int]:
        for ids_by_name in (self._ids_by_name, self._ids_by_alias):
            if text and text in ids_by_name:
                return ids_by_name[text]
        end = f".{text}"
        return [object_id for object_id, name in self._full.items() if _normalised(name).endswith(end)]

    def full(self, object_id: int) -> str:
        """The full name of an id. Raises SpecError if P4Info has no such id."""
        if object_id not in self._full:
            raise SpecError(f"no {self._kind} with the id {object_id} in P4Info")
        return self._full[object_id]

    def item(self, object_id: int) -> _T:
        """The object of an id. Raises SpecError like `full`."""
        self.full(object_id)
        return self.by_id[object_id]

    def shown(self, object_id: int) -> str:
        """The alias of an id if it is unique, else the full name."""
        alias = self._alias[object_id]
        unique = alias and self._find(_normalised(alias)) == [object_id]
        return alias if unique else self._full[object_id]


def _normalised(name: str) -> str:
    return name.replace("$valid$", "isValid()")


class _HasPreamble(Protocol):
    @property
    def preamble(self) -> p4i.Preamble: ...


_E = TypeVar("_E", bound=_HasPreamble)
_M = TypeVar("_M", p4i.MatchField, p4i.Action.Param)


def entities(kind: str, objects: Iterable[_E]) -> NameIndex[_E]:
    """Objects with a preamble in P4Info, such as tables and actions."""
    return NameIndex(kind, ((e.preamble.id, e.preamble.name, e.preamble.alias, e) for e in objects))


def members(kind: str, fields: Iterable[_M]) -> NameIndex[_M]:
    """Match fields of a table, or parameters of an action; if a name is missing, the id is used."""
    return NameIndex(kind, ((m.id, m.name or str(m.id), _last_part(m.name), m) for m in fields))


def _last_part(name: str) -> str:
    return name.rpartition(".")[2]
