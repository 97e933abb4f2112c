# SPDX-License-Identifier: Apache-2.0
"""@entry_restriction of tables and @action_restriction of actions (p4lang/p4-constraints).

P4Runtime's specification does not have them. They apply to entries and actions that clients insert or modify,
not to the program's initial entries or to deletions. constraints.py parses their language.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from tailrace.p4rt.messages import p4i
from tailrace.p4rt.status import P4RtError, exhausted, invalid
from tailrace.switch.p4runtime.entities.bytestring import encode
from tailrace.switch.p4runtime.entities.match import KeyPlan, MatchField, MatchKind, NamedField, PackedKey
from tailrace.switch.p4runtime.pins import constraints
from tailrace.switch.p4runtime.pins.annotations import Annotated, texts
from tailrace.switch.p4runtime.pins.constraints import INT, STRING, Conjunct, Scope, Type, Value
from tailrace.switch.p4runtime.pins.strings import SdnStrings

MAX_BYTES = 1 << 18
"""Most bytes of all constraints of a pipeline, which are parsed without a pause."""
MAX_TOKENS = 1 << 14
"""Most tokens (names, numbers, signs) of a pipeline's constraints; an entry may need to evaluate all."""
MAX_EVALUATED = 1 << 19
"""Most tokens evaluated for one update, such as a one-shot with many actions; they take some 0.1 s."""
MAX_EVALUATED_IN_WRITE = 1 << 24
"""Most tokens evaluated for one Write, which holds a lock; then its remaining updates are rejected."""
MAX_SHOWN = 120
"""Most characters of a constraint that an error message quotes."""


@dataclass(slots=True)
class ConstraintSet:
    """The constraints of one pipeline; `evaluated`: tokens evaluated for the current update."""

    remaining_bytes: int = MAX_BYTES
    tokens: int = 0
    evaluated: int = 0
    actions: dict[int, ActionRestriction | None] = field(default_factory=dict)
    """The restrictions of actions by action id; tables share them."""

    def parse(self, entity: Annotated, annotation: str, scope: Scope, owner: str) -> list[Conjunct]:
        """The conjuncts of a table's or an action's constraints.

        Raises:
            P4RtError: INVALID_ARGUMENT: a constraint is malformed, or the pipeline's are too long.
        """
        conjuncts: list[Conjunct] = []
        what = f"P4Info: {owner}, @{annotation}"
        for text in texts(entity, annotation):
            if text is None:
                raise invalid(f"{what}: expected one or more strings in double quotes")
            self.remaining_bytes -= len(text)
            if self.remaining_bytes < 0:
                raise invalid(f"{what}: the constraints of the pipeline have more than {MAX_BYTES} bytes")
            parsed = list(constraints.ConstraintParser(text, scope, what).conjuncts())
            self.tokens += sum(conjunct.tokens for conjunct in parsed)
            if self.tokens > MAX_TOKENS:
                raise invalid(
                    f"{what}: with this constraint the pipeline's constraints have {self.tokens} tokens; "
                    f"the limit is {MAX_TOKENS}"
                )
            conjuncts += parsed
        return conjuncts

    def of_table(self, table: p4i.Table, key: KeyPlan) -> EntryRestriction | None:
        """The restriction of a table; `key` has the table's fields in P4Info's order. None: it has none.

        Raises:
            P4RtError: INVALID_ARGUMENT: the constraint is malformed.
        """
        names = {}
        for position, (match, field_) in enumerate(zip(table.match_fields, key.fields, strict=True)):
            names[match.name] = (position, _match_type(field_))
        attributes = {"priority": (len(key.fields), INT)}
        scope = Scope("key", names, attributes)
        conjuncts = self.parse(table.preamble, "entry_restriction", scope, key.what)
        if not conjuncts:
            return None
        if len(names) < len(key.fields):
            raise invalid(f"P4Info: {key.what} has @entry_restriction, and fields with the same name")
        positions = {name: position for name, (position, _) in names.items()}
        return EntryRestriction(key.what, tuple(conjuncts), positions, self, key.fields)

    def of_action(
        self, action: p4i.Action, params: Sequence[tuple[str, int, SdnStrings | None]]
    ) -> ActionRestriction | None:
        """The restriction of an action; None: it has none.

        Args:
            params: name, width in bits, and strings (None: it is a number) of each parameter.

        Raises:
            P4RtError: INVALID_ARGUMENT: the constraint is malformed.
        """
        if action.preamble.id not in self.actions:
            self.actions[action.preamble.id] = _action_restriction(action, params, self)
        return self.actions[action.preamble.id]

    @staticmethod
    def refusal(evaluated: int) -> P4RtError | None:
        """The error for the rest of a Write that has evaluated this number of tokens; None: it may go on."""
        if evaluated < MAX_EVALUATED_IN_WRITE:
            return None
        return exhausted(f"a Write may evaluate at most {MAX_EVALUATED_IN_WRITE} tokens of constraints")


@dataclass(frozen=True, slots=True)
class _Restriction(ABC):
    """The conjuncts of one table or action; `positions`: of the values by name, without attributes."""

    annotation: ClassVar[str]
    what: str
    conjuncts: tuple[Conjunct, ...]
    positions: Mapping[str, int]
    constraints: ConstraintSet

    @abstractmethod
    def _shown(self, name: str, values: Sequence[Value]) -> str:
        """A name and its value, for errors."""

    def _check(self, values: Sequence[Value]) -> None:
        """Evaluates the conjuncts up to the first that does not hold.

        Raises:
            P4RtError: INVALID_ARGUMENT: a conjunct does not hold; the message has conjunct and values.
                RESOURCE_EXHAUSTED: the update has evaluated too many tokens.
        """
        constraints = self.constraints
        for conjunct in self.conjuncts:
            constraints.evaluated += conjunct.tokens
            if constraints.evaluated > MAX_EVALUATED:
                raise exhausted(
                    f"an update may evaluate at most {MAX_EVALUATED} tokens of constraints, "
                    "over all actions of a one-shot"
                )
            if not conjunct.holds(values):
                text = conjunct.text
                if len(text) > MAX_SHOWN:
                    text = text[: MAX_SHOWN - 3] + "..."
                shown = ", ".join(self._shown(name, values) for name in conjunct.names) or "it is never true"
                raise invalid(f"{self.what}: @{self.annotation} '{text}' does not hold: {shown}")


@dataclass(frozen=True, slots=True)
class EntryRestriction(_Restriction):
    """The @entry_restriction of one table."""

    annotation = "entry_restriction"
    fields: tuple[MatchField, ...]

    def check(self, packed: PackedKey, priority: int) -> None:
        """Checks the key and priority of an entry. Raises P4RtError."""
        self._check([*(_match_value(field_, packed) for field_ in self.fields), priority])

    def _shown(self, name: str, values: Sequence[Value]) -> str:
        position = self.positions.get(name)
        if position is None:  # `::priority`, the last value
            return f"{name} is {values[-1]}"
        return f"{name} {_match_shown(self.fields[position], values[position])}"


@dataclass(frozen=True, slots=True)
class ActionRestriction(_Restriction):
    """The @action_restriction of one action; `names`: translations of the parameters' values."""

    annotation = "action_restriction"
    names: tuple[SdnStrings | None, ...]

    def check(self, data: Sequence[int]) -> None:
        """Checks the parameters of an action call. Raises P4RtError."""
        pairs = zip(data, self.names, strict=True)
        self._check([number if names is None else names.to_sdn(number) for number, names in pairs])

    def _shown(self, name: str, values: Sequence[Value]) -> str:
        return f"{name} is {_shown(values[self.positions[name]])}"


def _action_restriction(
    action: p4i.Action, params: Sequence[tuple[str, int, SdnStrings | None]], parser: ConstraintSet
) -> ActionRestriction | None:
    what = f"action '{action.preamble.name}'"
    known = {
        name: (position, Type("bit", bits) if names is None else STRING)
        for position, (name, bits, names) in enumerate(params)
    }
    conjuncts = parser.parse(action.preamble, "action_restriction", Scope("parameter", known, {}), what)
    if not conjuncts:
        return None
    if len(known) < len(params):
        raise invalid(f"P4Info: {what} has @action_restriction, and parameters with the same name")
    positions = {name: position for name, (position, _) in known.items()}
    names = tuple(names for _, _, names in params)
    return ActionRestriction(what, tuple(conjuncts), positions, parser, names)


def _match_type(field_: MatchField) -> Type:
    if not isinstance(field_, NamedField):
        return Type(field_.kind.value, field_.bits)
    if field_.kind is MatchKind.EXACT:
        return Type(constraints.EXACT_STRING, field_.bits)
    return Type(constraints.OPTIONAL_STRING, field_.bits)


def _match_value(field_: MatchField, packed: PackedKey) -> tuple[Value, int]:
    """The two values of a field in constraints, such as value and mask; an omitted field is don't-care."""
    end = field_.offset + field_.nbytes
    octets = packed.key[field_.offset : end]
    mask = int.from_bytes(packed.mask[field_.offset : end], "big")
    # the data plane's field may be wider than P4Info's; constraints apply to P4Info's bits
    full = (1 << field_.bits) - 1
    if isinstance(field_, NamedField):
        return (field_.sdn(octets) if mask else b""), mask & full
    number = int.from_bytes(octets, "big")
    if field_.kind is MatchKind.LPM:
        return number, max(mask.bit_count() - field_.above, 0)
    return number, mask & full


def _match_shown(field_: MatchField, value: tuple[Value, int]) -> str:
    number, second = value
    if field_.kind is MatchKind.RANGE:
        return f"is {_shown(number)}..{_shown(second)}"
    if field_.kind is not MatchKind.EXACT and not second:
        return "is omitted"
    shown = f"is {_shown(number)}"
    if field_.kind is MatchKind.LPM:
        return f"{shown}/{second}"
    return f"{shown} &&& {_shown(second)}" if field_.kind is MatchKind.TERNARY else shown


def _shown(value: Value) -> str:
    return f"'{value.decode()}'" if isinstance(value, bytes) else f"0x{encode(value).hex()}"
