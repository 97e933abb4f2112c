# SPDX-License-Identifier: Apache-2.0
"""Reconciliation of a switch: reads its entities, writes the differences from its intent (what the controller
wants them to be), reads again.

A switch's state is always read, never remembered, so it does not matter who changed it or whether the switch
restarted. A second run writes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from tailrace.p4rt import programs
from tailrace.p4rt.diff import ByKey, EntityChange, by_key, diff, diff_by_key, stages
from tailrace.p4rt.encoding import encode, encode_shared
from tailrace.p4rt.endpoint import BATCH, Endpoint, Readable, run_at_once, write_all
from tailrace.p4rt.entities import P4Entity, P4TableEntry
from tailrace.p4rt.entry_files import Updates, refusal
from tailrace.p4rt.errors import ReadError, ReconcileError, WriteError
from tailrace.p4rt.inprocess import EntityUpdate, InProcess, InProcessSwitch
from tailrace.p4rt.intent import SwitchIntent
from tailrace.p4rt.messages import p4i, p4r
from tailrace.p4rt.programs import P4Program
from tailrace.p4rt.status import Code

ROUNDS = 3
"""How often `reconcile` writes differences before it gives up: another client may be writing, too."""


class ReconcileReport(msgspec.Struct, frozen=True):
    """What a reconciliation wrote."""

    inserted: int = 0
    modified: int = 0
    deleted: int = 0

    @property
    def writes(self) -> int:
        """Updates in all."""
        return self.inserted + self.modified + self.deleted

    def plus(self, other: ReconcileReport) -> ReconcileReport:
        """The sum of both reports."""
        return ReconcileReport(
            self.inserted + other.inserted, self.modified + other.modified, self.deleted + other.deleted
        )


@functools.lru_cache(maxsize=64)
def everything(program: P4Program) -> tuple[p4r.Entity, ...]:
    """Requests that read all forwarding state of a switch."""
    metered = {meter.preamble.id for meter in program.p4info.direct_meters}
    patterns = []
    for table in program.p4info.tables:
        if table.is_const_table:
            continue
        if table.match_fields:
            entry = p4r.TableEntry(table_id=table.preamble.id)
            if metered.intersection(table.direct_resource_ids):
                entry.meter_config.SetInParent()  # requests the meter's rates
            patterns.append(p4r.Entity(table_entry=entry))
        if has_mutable_default(table):
            default = p4r.TableEntry(table_id=table.preamble.id, is_default_action=True)
            patterns.append(p4r.Entity(table_entry=default))
    replication = p4r.PacketReplicationEngineEntry
    clones = replication(clone_session_entry=p4r.CloneSessionEntry())
    groups = replication(multicast_group_entry=p4r.MulticastGroupEntry())
    patterns += [p4r.Entity(packet_replication_engine_entry=entry) for entry in (clones, groups)]
    return tuple(patterns)


def has_mutable_default(table: p4i.Table) -> bool:
    """Whether a controller may set the default action of a table."""
    return not table.const_default_action_id and not table.implementation_id


async def read_all(endpoint: Readable, program: P4Program) -> list[p4r.Entity]:
    """All forwarding state of a switch: what a controller wrote, and default actions that it may change.

    Raises:
        SwitchError: the switch cannot be read.
    """
    mutable = {t.preamble.id for t in program.p4info.tables if has_mutable_default(t)}
    entities = []
    for entity in await endpoint.read(everything(program)):
        entry = entity.table_entry
        if entry.is_const or (entry.is_default_action and entry.table_id not in mutable):
            continue
        entities.append(entity)
    return entities + await _read_digests(endpoint, program)


async def _read_digests(endpoint: Readable, program: P4Program) -> list[p4r.Entity]:
    """The enabled digests, read one by one: BMv2 supports no wildcard here, and refuses to read a digest that
    is not enabled.
    """
    entities = []
    for digest in program.p4info.digests:
        request = p4r.Entity(digest_entry=p4r.DigestEntry(digest_id=digest.preamble.id))
        try:
            entities += await endpoint.read([request])
        except ReadError as error:
            if error.code != Code.NOT_FOUND.name:
                raise
    return entities


async def differences(
    endpoint: Readable, program: P4Program, intended: Iterable[P4Entity]
) -> list[EntityChange]:
    """The changes that a reconciliation would write now.

    Raises:
        SwitchError: the switch cannot be read.
    """
    return diff(program, encode(program, intended), await read_all(endpoint, program))


async def reconcile(
    endpoint: Endpoint, program: P4Program, intended: Iterable[P4Entity], *, alone: bool = False
) -> ReconcileReport:
    """Writes to a switch, which runs the program, until it has exactly the intended entities.

    Args:
        alone: there is no other writer, so a write without an error is not checked by a read.

    Raises:
        SwitchError: the switch cannot be read or written, or does not keep what is written.
    """
    wanted = by_key(encode(program, intended))
    total = ReconcileReport()
    refused: WriteError | None = None
    for _ in range(ROUNDS):
        changes = diff_by_key(program, wanted, by_key(await read_all(endpoint, program)))
        if not changes:
            return total
        written, refused = await _write(endpoint, stages(program, changes))
        total = total.plus(written)
        if alone and refused is None:
            return total
    remaining = diff_by_key(program, wanted, by_key(await read_all(endpoint, program)))
    if not remaining:
        return total
    raise refused or ReconcileError(
        endpoint.name, f"{len(remaining)} entries still differ from the intent after {ROUNDS} writes"
    )


async def _write(
    endpoint: Endpoint, update_stages: list[list[p4r.Update]]
) -> tuple[ReconcileReport, WriteError | None]:
    """Writes one stage after the other (p4rt.diff.stages: groups before the entries that use them). Returns
    what was written, and the error that stopped it, if any.
    """
    done: list[p4r.Update] = []
    for stage in update_stages:
        for start in range(0, len(stage), BATCH):
            batch = stage[start : start + BATCH]
            try:
                await endpoint.write(batch)
            except WriteError as error:
                done += [
                    update for i, update in enumerate(batch) if error.failures and i not in error.failures
                ]
                return _count(done), error
            done += batch
    return _count(done), None


def _count(updates: list[p4r.Update]) -> ReconcileReport:
    kinds = [update.type for update in updates]
    return ReconcileReport(
        *(kinds.count(kind) for kind in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE))
    )


async def install(
    endpoint: Endpoint, program: P4Program, intended: Iterable[P4Entity]
) -> tuple[bool, ReconcileReport]:
    """Pushes a program unless the switch runs it, and reconciles the entities.

    Returns:
        whether the program was pushed, and what the reconciliation wrote.

    Raises:
        SwitchError: the switch refuses something, or is not reachable.
    """
    pushed = await endpoint.cookie() != program.cookie
    if pushed:
        await endpoint.push(program)
    return pushed, await reconcile(endpoint, program, intended)


def install_all(
    switch: Callable[[str], InProcessSwitch], intents: Mapping[str, SwitchIntent]
) -> dict[str, ReconcileReport]:
    """Installs the intent of every switch of a network in this process; returns the writes by switch.

    Args:
        switch: returns the switch of a name.

    Raises:
        SwitchError: a switch refuses something.
    """
    fresh: dict[P4Program, ByKey] = {}
    loaded = {name: programs.load(name) for name in {each.program for each in intents.values()}}
    reports = {}
    for name, each in intents.items():
        endpoint, program = InProcess(switch(name)), loaded[each.program]
        if each.updates is None:
            reports[name] = run_at_once(_install(endpoint, program, each.entities, fresh))
        else:
            reports[name] = run_at_once(install_files(endpoint, program, each.updates))
    return reports


async def install_files(endpoint: Endpoint, program: P4Program, updates: Updates) -> ReconcileReport:
    """Pushes a program and writes the updates of files of entries, in their order.

    Raises:
        WriteError: the switch refuses updates; the message has their places in the files.
        SwitchError: it refuses the program, or is not reachable.
    """
    await endpoint.push(program)
    try:
        await write_all(endpoint, updates)
    except WriteError as error:
        if not error.failures:
            raise
        raise WriteError(endpoint.name, refusal(updates, program.p4info, error.failures)) from error
    return _count(updates)


async def _install(
    endpoint: InProcess, program: P4Program, intended: Sequence[P4Entity], fresh: dict[P4Program, ByKey]
) -> ReconcileReport:
    """As `install` without other writers, but reads the entities after a push only once per program. Then
    writes table entries without a comparison.

    Args:
        fresh: the entities of a switch after a push, by program.
    """
    if await endpoint.cookie() == program.cookie:
        return await reconcile(endpoint, program, intended, alone=True)
    await endpoint.push(program)
    if program not in fresh:
        fresh[program] = by_key(await read_all(endpoint, program))
    # entries that the program itself made are compared with the intent, too
    if any(key[0] != "default" for key in fresh[program]):
        return await reconcile(endpoint, program, intended, alone=True)
    entries: list[p4r.Entity] = []
    other_entities: list[p4r.Entity] = []  # default entries, multicast groups, clone sessions, digests
    for entity, message in zip(intended, encode_shared(program, intended), strict=True):
        is_entry = type(entity) is P4TableEntry and not entity.is_default_action
        (entries if is_entry else other_entities).append(message)
    changes = diff_by_key(program, by_key(other_entities), fresh[program])
    written, refused = await _write(endpoint, stages(program, changes))
    try:
        await endpoint.write([EntityUpdate(entity) for entity in entries])
    except WriteError as error:
        refused = error
    if refused is None:
        return written.plus(ReconcileReport(inserted=len(entries)))
    # raises the error again, unless its only cause is that two entries have the same key
    return await reconcile(endpoint, program, intended, alone=True)
