# SPDX-License-Identifier: Apache-2.0
"""A model of the Flowcut table of one switch, written from the paper (§II, §IV-C) and not from the P4.

It is fed with what the switch saw and did, in order, and objects (MismatchError) to the first thing that it cannot
explain. One rule makes the order of every flow: while a byte of a flow may be in flight between this switch and
the egress switch, the flow keeps its next hop.

  * A flow with bytes in flight has a table entry (way of its bucket), or its bytes are in its bucket's untracked
    count. The two never mix: nobody enters a bucket whose untracked count is not zero.
  * An ACK says whether its packet was tracked here. What was sent before its flow's entry was made is not of the entry.
  * An entry dies when its last byte is acknowledged. An entry, or an untracked count, that nothing was added to
    for longer than the age is dead too: what it still counts was lost.
  * A flow without entry takes its ECMP path as long as no packet of it was ever acknowledged here, and whenever
    it finds no way; else a next hop that is not more loaded than the others. Those that it was drained from, and has
    not ended a flowcut on by itself since, are out of the question while there are others; and the one that it was
    drained from just now is the last to be thought of.
  * The first packet of a flowcut says so if the flow's last flowcut by the same port speaks against that port. For
    the switch behind, which is not the one that drains, its own last flowcut of the flow was then drained, too.
  * While a bucket has untracked bytes, its flows without entry keep the port of their last untracked packet,
    whatever the controller does to the group. (One flow for each 16 bits of the hash has this privilege.)
  * A flow in flight whose port does not lead to its destination any more is dropped.
  * A source that sends more of a flow that it was asked to stop than it can have held then has its class paused at each
    ACK, as long as the flow drains; with pauses by class that is how all are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from tests.flowcut.frames import XOFF, XOFF_CREDIT, XON, Key
from tests.flowcut.oracle_rtt import ONE, Averages, Least

WAYS = 4
LEFT_OR_MORE = 127  # of the BTH's seven bits: "so many packets are left, or more"


class MismatchError(AssertionError):
    """The switch did what the model cannot explain."""


class State(Enum):
    """The numbers are those that READ_FLOWS shows."""

    TRACKED = 0
    DRAINING = 1
    RESELECT = 2


@dataclass(frozen=True)
class OracleConfig:
    """Parameters in the switch's units (ticks, 8.8, of 256, 16.16), as the controller wrote them."""

    bucket_mask: int
    age: int
    rtt_threshold: int
    growth_threshold: int
    alpha: int
    ticks_per_byte: int
    min_left: int
    resume_bytes: int
    credit_bytes: int
    by_class: bool
    quanta: int
    obey_bytes: int
    first_least_loaded: bool = False
    baseline: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@dataclass
class Entry:
    key: Key
    in_port: int
    out_port: int
    in_flight: int
    last: int
    left: int
    rtt: Averages
    since: int
    state: State = State.TRACKED
    after_stop: int = 0


@dataclass
class Bucket:
    ways: list[Entry | None] = field(default_factory=lambda: [None] * WAYS)
    untracked: int = 0
    untracked_last: int = 0


@dataclass(frozen=True)
class Kept:
    """The port of an untracked flow, and when its last packet went there."""

    key: Key
    port: int
    last: int


@dataclass(frozen=True)
class Choice:
    """Where a packet may go: one of `ports`; `by_load`: one that is not more loaded than another of them."""

    ports: tuple[int, ...]
    by_load: bool = False


@dataclass(frozen=True)
class Memory:
    """What is remembered of a flow: the port of its last flowcut, and the ports that speak against themselves."""

    last_port: int = -1
    drained: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Mark:
    """What the stamp of a data packet says."""

    untracked: bool = False
    drained: bool = False


@dataclass(frozen=True)
class Reaction:
    """What follows from an ACK: a pause operation for the source (0: none) with its credit, or the quanta of a
    pause of its class, and whether the ACK that goes on is marked."""

    op: int = 0
    credit_bytes: int = 0
    quanta: int | None = None
    congested: bool = False


@dataclass
class Counts:
    """As the program counts."""

    flowcut_created: int = 0
    flowcut_deleted: int = 0
    flowcut_overflow: int = 0
    class_pauses_sent: int = 0
    xoff_sent: int = 0
    xon_sent: int = 0
    acks_unknown: int = 0


class Oracle:
    """The model of one switch's table. `hash_of` gives 32 bits, of which the model asks no more than that."""

    def __init__(self, config: OracleConfig, hash_of: Callable[[Key], int]) -> None:
        self.config = config
        self.counts = Counts()
        self.buckets: dict[int, Bucket] = {}
        self.hash_of = hash_of
        self._ecmp: dict[tuple[Key, tuple[int, ...]], int] = {}
        self._memory: dict[int, Memory] = {}
        """By 16 bits of the hash: flows that were acknowledged before. Flows that share these bits share the memory,
        and no order depends on it."""
        self._kept: dict[int, Kept] = {}
        """By 16 bits of the hash, among them the bucket's."""
        self._least = Least({}, config.baseline)

    # ---- data ----

    def heed(self, now: int, key: Key) -> None:
        """A data packet arrives, and the switch before says that the flow was drained on its way by here."""
        entry, memory = _find(self._bucket(key), key), self._memory.get(self._slot(key))
        if memory is not None and (entry is None or self._aged(now, entry.last)):
            drained = memory.drained | {memory.last_port}
            self._memory[self._slot(key)] = replace(memory, drained=drained)

    def may_go(self, now: int, key: Key, candidates: tuple[int, ...]) -> Choice:
        """Where a data packet may go that arrives now; `candidates` are the next hops to its destination."""
        bucket = self._bucket(key)
        entry = _find(bucket, key)
        if entry is not None and not self._aged(now, entry.last):
            if entry.state is State.RESELECT:
                return self._least_reluctant(key, entry.out_port, candidates)
            return _stay(entry.out_port, candidates)
        way = self._way(now, bucket, key)
        if way is not None and self._may_choose(key):
            memory = self._memory.get(self._slot(key), Memory())
            just_left = memory.last_port if memory.last_port in memory.drained else None
            return self._least_reluctant(key, just_left, candidates)
        kept = self._kept_by(now, bucket, key)
        if way is None and kept is not None and kept.key == key:
            return _stay(kept.port, candidates)
        ecmp = self._ecmp.get((key, candidates))
        return Choice(candidates if ecmp is None else (ecmp,))

    def sent(
        self,
        now: int,
        key: Key,
        nbytes: int,
        in_port: int,
        out_port: int,
        left: int,
        candidates: tuple[int, ...],
    ) -> Mark:
        """The packet was let into the queue of a port that `may_go` allowed; what its stamp is to say."""
        bucket = self._bucket(key)
        entry = _find(bucket, key)
        if entry is not None and not self._aged(now, entry.last):
            if entry.state is State.RESELECT:
                entry.state, entry.out_port = State.TRACKED, out_port
                entry.rtt = Averages(self.config.alpha)
            entry.in_flight += nbytes
            entry.after_stop += nbytes
            entry.last, entry.in_port, entry.left = now, in_port, left
            return Mark()
        way = self._way(now, bucket, key)
        kept = self._kept_by(now, bucket, key) if way is None else None
        is_kept = kept is not None and kept.key == key
        if (way is None and not is_kept) or (way is not None and not self._may_choose(key)):
            self._ecmp.setdefault((key, candidates), out_port)
        if way is None:
            if is_kept or kept is None:
                self._kept[self._kept_slot(key)] = Kept(key, out_port, now)
            bucket.untracked = self._untracked(now, bucket) + nbytes
            bucket.untracked_last = now
            self.counts.flowcut_overflow += 1
            return Mark(untracked=True)
        rtt = Averages(self.config.alpha)
        bucket.ways[way] = Entry(key, in_port, out_port, nbytes, now, left, rtt, now)
        self.counts.flowcut_created += 1
        return Mark(drained=out_port in self._memory.get(self._slot(key), Memory()).drained)

    # ---- ACKs ----

    def acknowledged(
        self,
        now: int,
        key: Key,
        nbytes: int,
        rtt: int,
        hops: int,
        congested: bool,
        at_source: bool,
        untracked: bool,
    ) -> Reaction:
        """An ACK for a packet that this switch stamped `rtt` ticks ago, `hops` links before its egress switch."""
        bucket = self._bucket(key)
        entry = _find(bucket, key)
        if untracked:
            bucket.untracked = max(0, self._untracked(now, bucket) - nbytes)
        if untracked or entry is None or now - rtt < entry.since:
            self.counts.acks_unknown += 1
            return Reaction(congested=congested)
        entry.in_flight = max(0, entry.in_flight - nbytes)
        entry.rtt.add(self._least.normalise(rtt, hops, nbytes, self.config.ticks_per_byte))
        op = 0
        holds = entry.state is State.DRAINING
        if entry.in_flight == 0:
            bucket.ways[bucket.ways.index(entry)] = None
            self.counts.flowcut_deleted += 1
            drained = self._memory.get(self._slot(key), Memory()).drained - {entry.out_port}
            if entry.state is not State.TRACKED or self._worth_a_drain(entry, congested):
                drained |= {entry.out_port}
            self._memory[self._slot(key)] = Memory(entry.out_port, drained)
            op = XON if entry.state is State.DRAINING else 0
        elif entry.state is State.DRAINING:
            if at_source and 0 < self.config.resume_bytes and entry.in_flight <= self.config.resume_bytes:
                entry.state, op = State.RESELECT, XON
        elif entry.state is State.TRACKED and self._worth_a_drain(entry, congested):
            entry.state, congested = State.DRAINING, True
            entry.after_stop = 0
            op = XOFF_CREDIT if self.config.credit_bytes else XOFF
        if at_source and (op or holds) and (self.config.by_class or (not op and self._disobeyed(entry))):
            self.counts.class_pauses_sent += 1
            return Reaction(quanta=0 if op == XON else self.config.quanta)
        return self._reaction(op, congested, at_source)

    def _disobeyed(self, entry: Entry) -> bool:
        """The source was asked to stop the flow, and has sent more of it since than whoever obeys could."""
        return entry.after_stop > self.config.obey_bytes

    def _reaction(self, op: int, congested: bool, at_source: bool) -> Reaction:
        if not at_source:
            return Reaction(congested=congested)
        self.counts.xoff_sent += op in (XOFF, XOFF_CREDIT)
        self.counts.xon_sent += op == XON
        return Reaction(op, self.config.credit_bytes if op == XOFF_CREDIT else 0)

    def _worth_a_drain(self, entry: Entry, congested: bool) -> bool:
        c = self.config
        high = entry.rtt.average > c.rtt_threshold or entry.rtt.growth > c.growth_threshold
        return (high or congested) and (entry.left in (0, LEFT_OR_MORE) or entry.left > c.min_left)

    # ---- sweeping ----

    def sweep(self, now: int, number: int) -> None:
        """A SWEEP of a bucket: what is past its age is gone."""
        bucket = self.buckets.setdefault(number, Bucket())
        bucket.untracked = self._untracked(now, bucket)
        for way, entry in enumerate(bucket.ways):
            if entry is not None and self._aged(now, entry.last):
                bucket.ways[way] = None

    # ---- parts ----

    def bucket_number(self, key: Key) -> int:
        """The bucket of a flow."""
        return self.hash_of(key) >> 8 & self.config.bucket_mask

    def _kept_slot(self, key: Key) -> int:
        return self.hash_of(key) >> 8 & 0xFFFF

    def _kept_by(self, now: int, bucket: Bucket, key: Key) -> Kept | None:
        """Who keeps a port in the flow's slot; None: nobody has bytes in flight there."""
        kept = self._kept.get(self._kept_slot(key))
        if kept is None or self._aged(now, kept.last) or not self._untracked(now, bucket):
            return None
        return kept

    def _slot(self, key: Key) -> int:
        return self.hash_of(key) >> 16

    def _least_reluctant(self, key: Key, just_left: int | None, candidates: tuple[int, ...]) -> Choice:
        drained = self._memory.get(self._slot(key), Memory()).drained

        def reluctance(port: int) -> int:
            return 2 if port == just_left else 1 if port in drained else 0

        least = min((reluctance(port) for port in candidates), default=0)
        return Choice(tuple(port for port in candidates if reluctance(port) == least), by_load=True)

    def _may_choose(self, key: Key) -> bool:
        return self.config.first_least_loaded or self._slot(key) in self._memory

    def _bucket(self, key: Key) -> Bucket:
        return self.buckets.setdefault(self.bucket_number(key), Bucket())

    def _aged(self, now: int, last: int) -> bool:
        return now - last > self.config.age

    def _untracked(self, now: int, bucket: Bucket) -> int:
        return 0 if self._aged(now, bucket.untracked_last) else bucket.untracked

    def _way(self, now: int, bucket: Bucket, key: Key) -> int | None:
        """The way that a flow without live entry gets; None: it must go untracked.

        A flow's own dead entry is its way whatever is untracked: since it was made, no byte of the flow was.
        """
        for way, entry in enumerate(bucket.ways):
            if entry is not None and entry.key == key:
                return way
        if self._untracked(now, bucket):
            return None
        for way, entry in enumerate(bucket.ways):
            if entry is None or self._aged(now, entry.last):
                return way
        return None


def _find(bucket: Bucket, key: Key) -> Entry | None:
    return next((entry for entry in bucket.ways if entry is not None and entry.key == key), None)


def _stay(port: int, candidates: tuple[int, ...]) -> Choice:
    return Choice((port,) if port in candidates else ())


__all__ = ["ONE", "WAYS", "Choice", "MismatchError", "Oracle", "OracleConfig", "Reaction", "State"]
