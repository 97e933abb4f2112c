# SPDX-License-Identifier: Apache-2.0
"""Rules of P4Runtime about parts of messages: what is wrong with one, and its canonical form. For oracle.py."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from finsy.proto import p4i, p4r

from tailrace.p4rt.status import Code

Codes = set[Code]
Matched = p4i.Table | p4i.ValueSet
MatchValue = tuple[object, ...]
GroupMember = p4r.ActionProfileGroup.Member | p4r.ActionProfileAction

MAX_PORT = 511
MAX_INSTANCE = 0xFFFF
"""Ports of v1model have 9 bits, replication ids 16."""
MAX_REPLICAS = 16384
"""A limit of ours."""
WITH_PRIORITY = (p4i.MatchField.TERNARY, p4i.MatchField.RANGE, p4i.MatchField.OPTIONAL)
_KINDS = {
    p4i.MatchField.EXACT: "exact",
    p4i.MatchField.LPM: "lpm",
    p4i.MatchField.TERNARY: "ternary",
    p4i.MatchField.RANGE: "range",
    p4i.MatchField.OPTIONAL: "optional",
}


def fits(data: bytes, bits: int) -> bool:
    """Whether a bytestring is a value of so many bits (8.3)."""
    return bool(data) and not int.from_bytes(data, "big") >> bits


def shortest(data: bytes) -> bytes:
    """The canonical bytestring of the same value (8.3)."""
    return data.lstrip(b"\0") or b"\0"


def number(data: bytes) -> int:
    return int.from_bytes(data, "big")


def fields_of(owner: Matched) -> Iterable[p4i.MatchField]:
    """The key of a table or value set."""
    return owner.match_fields if isinstance(owner, p4i.Table) else owner.match


def kind_of(field: p4i.MatchField) -> str:
    """The member of FieldMatch that the field wants."""
    return _KINDS[field.match_type]


def wrong_match(owner: Matched, given: Iterable[p4r.FieldMatch]) -> Codes:
    """What is wrong with a key (9.1.1)."""
    codes: Codes = set()
    fields = {declared.id: declared for declared in fields_of(owner)}
    seen = set()
    for match in given:
        field = fields.get(match.field_id)
        if field is None or match.field_id in seen or match.WhichOneof("field_match_type") != kind_of(field):
            codes.add(Code.INVALID_ARGUMENT)
        if field is not None and match.WhichOneof("field_match_type") == kind_of(field):
            codes |= _wrong_value(field, match)
        seen.add(match.field_id)
    if any(
        declared.match_type == p4i.MatchField.EXACT and declared.id not in seen
        for declared in fields.values()
    ):
        codes.add(Code.INVALID_ARGUMENT)
    return codes


def _values(field: p4i.MatchField, match: p4r.FieldMatch) -> tuple[bytes, ...]:
    kind = kind_of(field)
    if kind == "ternary":
        return match.ternary.value, match.ternary.mask
    if kind == "range":
        return match.range.low, match.range.high
    return (getattr(match, kind).value,)


def _wrong_value(field: p4i.MatchField, match: p4r.FieldMatch) -> Codes:
    bits, kind = field.bitwidth, kind_of(field)
    values = _values(field, match)
    codes = set() if all(fits(value, bits) for value in values) else {Code.OUT_OF_RANGE}
    first, last = number(values[0]), number(values[-1])
    if kind == "lpm":
        length = match.lpm.prefix_len
        wrong = not 0 < length <= bits or first & ((1 << bits - length) - 1)
    elif kind == "ternary":
        wrong = last == 0 or first & ~last
    elif kind == "range":
        wrong = first > last or (first == 0 and last == (1 << bits) - 1)
    else:
        wrong = False
    return codes | ({Code.INVALID_ARGUMENT} if wrong else set())


def wrong_priority(table: p4i.Table, priority: int) -> Codes:
    """Tables with don't-care matches want a priority above 0, others none (9.1)."""
    wanted = any(field.match_type in WITH_PRIORITY for field in table.match_fields)
    return set() if (priority > 0 if wanted else priority == 0) else {Code.INVALID_ARGUMENT}


def canonical_match(owner: Matched, given: Iterable[p4r.FieldMatch]) -> list[p4r.FieldMatch]:
    """A key that is right, as it is read back: in P4Info's order, values as short as can be."""
    by_id = {match.field_id: match for match in given}
    matches = []
    for field in fields_of(owner):
        match = by_id.get(field.id)
        if match is None:
            continue
        out, values = p4r.FieldMatch(field_id=field.id), [shortest(value) for value in _values(field, match)]
        kind = kind_of(field)
        if kind == "lpm":
            out.lpm.value, out.lpm.prefix_len = values[0], match.lpm.prefix_len
        elif kind == "ternary":
            out.ternary.value, out.ternary.mask = values
        elif kind == "range":
            out.range.low, out.range.high = values
        else:
            getattr(out, kind).value = values[0]
        matches.append(out)
    return matches


def match_key(owner: Matched, given: Iterable[p4r.FieldMatch]) -> MatchValue:
    """What is the same for equal keys."""
    return tuple(match.SerializeToString() for match in canonical_match(owner, given))


def canonical_action(action: p4r.Action) -> p4r.Action:
    """An action that is right, as it is read back; P4Info counts parameters from 1."""
    out = p4r.Action(action_id=action.action_id)
    for param in sorted(action.params, key=lambda given: given.param_id):
        out.params.add(param_id=param.param_id, value=shortest(param.value))
    return out


def wrong_counter(data: p4r.CounterData) -> bool:
    """Whether no counter can have these values."""
    return data.byte_count < 0 or data.packet_count < 0


def wrong_reset(data: p4r.MeterCounterData) -> bool:
    """Whether it would set what a meter has counted to anything but zero."""
    counters = (data.green, data.yellow, data.red)
    return any(counter.byte_count or counter.packet_count for counter in counters)


def copy_counter(given: p4r.CounterData, out: p4r.CounterData) -> None:
    """Values as they are read back."""
    out.byte_count, out.packet_count = given.byte_count, given.packet_count


def wrong_rates(config: p4r.MeterConfig, kind: int) -> Codes:
    """What is wrong with the rates of a meter of a type (9.4)."""
    codes: Codes = set()
    if min(config.cir, config.cburst, config.pir, config.pburst, config.eburst) < 0:
        codes.add(Code.INVALID_ARGUMENT)
    if kind == p4i.MeterSpec.TWO_RATE_THREE_COLOR:
        if config.eburst or config.pir < config.cir:
            codes.add(Code.INVALID_ARGUMENT)
        return codes
    if (config.pir, config.pburst) != (config.cir, config.cburst):
        codes.add(Code.INVALID_ARGUMENT)
    if config.eburst and kind == p4i.MeterSpec.SINGLE_RATE_TWO_COLOR:
        codes.add(Code.INVALID_ARGUMENT)
    return codes


def canonical_rates(config: p4r.MeterConfig) -> p4r.MeterConfig:
    """Rates as they are read back."""
    out = p4r.MeterConfig()
    out.CopyFrom(config)
    out.DiscardUnknownFields()
    return out


def wrong_member(member: GroupMember, profile: p4i.ActionProfile) -> Codes:
    """What is wrong with weight and watch port of a member of a group or one-shot (9.2.2, 9.2.3)."""
    codes: Codes = set()
    if profile.weights_disallowed:
        if member.weight:
            codes.add(Code.INVALID_ARGUMENT)
    elif member.weight <= 0:
        codes.add(Code.INVALID_ARGUMENT)
    if profile.WhichOneof("selector_size_semantics") == "sum_of_members":
        limit = profile.sum_of_members.max_member_weight
        if limit and member.weight > limit:
            codes.add(Code.INVALID_ARGUMENT)
    which = member.WhichOneof("watch_kind")
    if which == "watch" and not 0 <= member.watch <= MAX_PORT:
        codes.add(Code.INVALID_ARGUMENT)
    if which == "watch_port" and member.watch_port:
        if not fits(member.watch_port, 32):
            codes.add(Code.OUT_OF_RANGE)
        elif number(member.watch_port) > MAX_PORT:
            codes.add(Code.INVALID_ARGUMENT)
    return codes


def copy_member(given: GroupMember, out: GroupMember) -> None:
    """Weight and watch port as they are read back."""
    out.weight = given.weight
    which = given.WhichOneof("watch_kind")
    if which == "watch":
        out.watch = given.watch
    elif which == "watch_port" and given.watch_port:
        out.watch_port = shortest(given.watch_port)


def places_of(replica: p4r.Replica) -> Iterator[tuple[bytes, int]]:
    """Port and instance of a replica and of its backups."""
    if replica.WhichOneof("port_kind") == "port":
        yield replica.port, replica.instance
    else:
        yield replica.egress_port.to_bytes(4, "big"), replica.instance
    for backup in replica.backup_replicas:
        yield backup.port, backup.instance


def wrong_replicas(replicas: Collection[p4r.Replica]) -> Codes:
    """What is wrong with the replicas of a group or session (9.5)."""
    codes: Codes = set()
    places = [place for replica in replicas for place in places_of(replica)]
    if len(places) + len(replicas) > MAX_REPLICAS:
        codes.add(Code.RESOURCE_EXHAUSTED)
    if len({(number(port), instance) for port, instance in places}) < len(places):
        codes.add(Code.INVALID_ARGUMENT)
    for port, instance in places:
        if not fits(port, 32):
            codes.add(Code.OUT_OF_RANGE)
        elif number(port) > MAX_PORT or instance > MAX_INSTANCE:
            codes.add(Code.INVALID_ARGUMENT)
    for replica in replicas:
        first, *backups = (number(port) for port, _ in places_of(replica))
        if first in backups:
            codes.add(Code.INVALID_ARGUMENT)
    return codes


def canonical_replicas(given: Iterable[p4r.Replica]) -> list[p4r.Replica]:
    """Replicas as they are read back."""
    canonical = []
    for replica in given:
        out = p4r.Replica()
        out.CopyFrom(replica)
        out.DiscardUnknownFields()
        if out.WhichOneof("port_kind") == "port":
            out.port = shortest(out.port)
        for backup in out.backup_replicas:
            backup.port = shortest(backup.port)
        canonical.append(out)
    return canonical
