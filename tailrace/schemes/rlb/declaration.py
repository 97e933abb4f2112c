# SPDX-License-Identifier: Apache-2.0
"""RLB (load balancing with in-network recirculation, §III, §IV) over one of four path selectors: it rejects a
selector's choice if PFC is about to pause that path. Symbols and defaults of keys:

    d, C      the longest delay and the highest rate of a link between switches; dC: the bytes in flight on it
    n         the key flows, the degree of incast
    dt        d (in §III-B.1 2 us)
    Q_PFC     the key pfc; else the threshold of the PFC spec; else 256 KB (§II-B), but at least 26 dC, which
              is nearly the same with the paper's 40 Gbps and 2 us
    Q_th      the key qth, from dC to Q_PFC - dC(n - 1); default: a quarter of Q_PFC, clamped to this range
              (assumption; Fig. 18: lower values are better)
    warn      derivative (§III-B.1); the hardware of §V warns whenever Q_th is exceeded
    margin    (n - 1) times d or dt, whichever is longer, at least once (§III-B.1 has "a given threshold"): a
              queue that grows by C, the most that a link brings, is warned of at Q_PFC - dC(n - 1), the upper
              bound of eq. 3; a slower one later
    valid     the longest pause that PFC can ask for, at the slowest link: while a port is paused, no packet
              arrives that could renew the warning (assumption). Otherwise a warning is renewed after half of
              this time
    probe     one base RTT (§V)
    age       16 probe periods (assumption)
    last      p, the optimal path (§IV-B.1)
    interval  of Algorithm 2, one base RTT (assumption: in the time t_rc, the delay of a recirculation, only
              a few packets arrive here)
    hold      100 base RTTs, at least one interval (assumption)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from msgspec.structs import replace

from tailrace.hosts.options.nic import NicConfig
from tailrace.p4rt.entities import P4Entity
from tailrace.p4rt.target import Target
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.dragonfly.paths import GAP
from tailrace.schemes.drill import BY_GROUP, MEMORY
from tailrace.schemes.errors import IntentError
from tailrace.schemes.hermes import HermesConfig, TagTable, with_hermes
from tailrace.schemes.letflow import ALL, TIERS
from tailrace.schemes.presto import CELL, CELL_PACKETS, DEFAULT_CELL_BYTES, cell_bytes_of
from tailrace.schemes.resolved import EntryPlan, PathTable, SchemeContext
from tailrace.schemes.rlb import app
from tailrace.schemes.rlb.app import (
    BEST,
    DERIVATIVE,
    DRILL,
    DYNAMIC,
    FIXED,
    HERMES,
    LASTS,
    LETFLOW,
    LIMITS,
    NO_LIMIT,
    PRESTO,
    THRESHOLD,
    VARIANTS,
    WARNINGS,
)
from tailrace.schemes.rlb.faulty_paths import RlbWatcher
from tailrace.schemes.watch import FormatTime, Notify
from tailrace.spec import Spec, keys
from tailrace.spec.constants import NS_PER_S
from tailrace.spec.units import format_time
from tailrace.spec.watchdog import MAX_PAUSE_BITS
from tailrace.topology import Topology
from tailrace.topology.timing import base_rtt_ns, in_flight_bytes, link_delay_ns

DEFAULT_FLOWS = 15
"""The paper's default degree of incast (§VI-B.3)."""

DEFAULT_MOST = 8
DEFAULT_FAULT = 4
"""Defaults of the keys most and fault. Assumptions: the paper gives no limits of recirculations."""

MOST_COUNTED = 255
"""The most recirculations that a packet can count (P4: 8 bits); also the limit with limit=none."""

PAUSE_BYTES = 256_000
PAUSE_LINKS = 26
USUAL_DT_NS = 2_000
"""dt if links have no delay."""

HOLD_RTTS = 100

_KEPT_PROBES = 16
_MOST_VALID_NS = 4_000_000_000
"""The longest time in ns that fits the field of a warning."""


def _time(name: str, meaning: str, section: str = "") -> keys.Key:
    return keys.time(name, meaning, least=1, section=section)


def _size(name: str, meaning: str, section: str) -> keys.Key:
    return keys.size(name, meaning, least=1, section=section)


def _counted(name: str, meaning: str, section: str) -> keys.Key:
    return keys.integer(name, meaning, least=0, most=MOST_COUNTED, section=section)


@scheme
class RlbConfig(SchemeConfig, frozen=True, kw_only=True):
    """A selector whose choices are rejected if PFC is about to pause the path.

    stay_ns: an addition to the paper; 0: Algorithm 1 decides for each packet, as in the paper
    limit: how recirculations are limited; `dynamic`, by queue length and delay, too, is the paper's RLB*
    fault: mean number of recirculations (Rc_avg) above which a path counts as failed (Algorithm 2); 0: off
    """

    name: ClassVar[str] = "rlb"
    about: ClassVar[str] = "rejects another scheme's choice of a path that PFC is about to pause"
    made_for: ClassVar[tuple[str, ...]] = ("dcqcn",)
    counters: ClassVar[tuple[str, ...]] = (
        *("warnings_", "recirculations_refused"),
        *("probes_", "path_rtts_", "failures_"),
    )
    variant: Annotated[
        str, keys.choice("variant", "the scheme whose choices are checked", VARIANTS, section="RLB §VI-A")
    ] = DRILL
    pause_bytes: Annotated[
        int | None, _size("pfc", "length of an ingress queue at which PFC pauses its sender", "RLB §II-B")
    ] = None
    warn_bytes: Annotated[
        int | None,
        _size("qth", "length of an ingress queue below which no pause is predicted", "RLB §III-B.3"),
    ] = None
    warn: Annotated[
        str,
        keys.choice(
            "warn",
            "how pauses are predicted: by the queue's growth, or only by qth",
            WARNINGS,
            section="RLB §III-B.1, §V",
        ),
    ] = DERIVATIVE
    dt_ns: Annotated[
        int | None,
        _time("dt", "interval over which the growth of an ingress queue is measured", "RLB §III-B.1"),
    ] = None
    flows: Annotated[
        int,
        keys.integer(
            "flows",
            "number of senders of an incast, from which the range of permitted qth is computed",
            least=1,
            section="RLB §III-B.3",
        ),
    ] = DEFAULT_FLOWS
    margin_ns: Annotated[
        int | None, _time("margin", "how long before a predicted pause a warning is sent", "RLB §III-B.1")
    ] = None
    valid_ns: Annotated[
        int | None, _time("valid", "time after which a warning expires if it is not renewed")
    ] = None
    probe_ns: Annotated[
        int | None, _time("probe", "interval between RTT measurements of each path", "RLB §V")
    ] = None
    keep_ns: Annotated[int | None, _time("age", "time after which a measured RTT expires")] = None
    stay_ns: Annotated[
        int, keys.time("stay", "idle time after which a rerouted flow may leave its new path")
    ] = 0
    limit: Annotated[
        str,
        keys.choice(
            "limit",
            "limit of a packet's recirculations; fixed: most=; dynamic (RLB*): also queue length and delay",
            LIMITS,
            section="RLB §IV-B.1",
        ),
    ] = DYNAMIC
    last: Annotated[
        str,
        keys.choice(
            "last",
            "path of a packet that may not recirculate: p (the best path), or any without a warning",
            LASTS,
            section="RLB §IV-B.1",
        ),
    ] = BEST
    most: Annotated[int, _counted("most", "maximum number of recirculations of a packet", "RLB §IV-B.1")] = (
        DEFAULT_MOST
    )
    fault: Annotated[
        int,
        _counted(
            "fault",
            "mean number of recirculations above which a path counts as failed; 0: off",
            "RLB §IV-B.2",
        ),
    ] = DEFAULT_FAULT
    fault_ns: Annotated[
        int | None, _time("interval", "minimum time over which the mean for fault= is taken", "RLB §IV-B.2")
    ] = None
    hold_ns: Annotated[
        int | None, _time("hold", "time for which a path is not used after its first failure")
    ] = None
    cell_bytes: Annotated[int, CELL] = DEFAULT_CELL_BYTES
    cell_packets: Annotated[int, CELL_PACKETS] = 0
    memory: Annotated[str, MEMORY] = BY_GROUP
    gap_ns: Annotated[int | None, GAP] = None
    tiers: Annotated[str, TIERS] = ALL

    @property
    def only_transport(self) -> str | None:
        """The transport of Hermes if Hermes is the selector; None (any transport) for other selectors."""
        return HermesConfig().only_transport if self.variant == HERMES else None

    @property
    def marks_queues(self) -> bool:
        return self.variant == HERMES

    @property
    def predicts_pauses(self) -> bool:
        return True

    def checked(self, spec: Spec) -> RlbConfig:
        # refuse(keys, option): the keys need the option, so they must not be given without it
        selectors = (
            ("cell", PRESTO),
            ("packets", PRESTO),
            ("gap", LETFLOW),
            ("tiers", LETFLOW),
            ("memory", DRILL),
        )
        for key, variant in selectors:
            if self.variant != variant:
                spec.refuse((key,), f"variant={variant}")
        if self.cell_packets:
            spec.refuse(("cell",), "packets=0")
        if self.warn == THRESHOLD:
            spec.refuse(("dt", "margin"), f"warn={DERIVATIVE}")
        if not self.fault:
            spec.refuse(("interval", "hold"), "fault above 0")
        if self.limit != NO_LIMIT:
            return self
        spec.refuse(("most",), f"limit={FIXED} or limit={DYNAMIC}")
        return replace(self, most=MOST_COUNTED)

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedRlb:
        """See SchemeConfig.

        Raises:
            IntentError: Q_th is out of its bounds, or no value is possible.
        """
        rtt_ns, delay_ns = base_rtt_ns(topology, context.frame_bytes), link_delay_ns(topology)
        pause = pause_bytes(topology, self.pause_bytes, context.pause_bytes)
        interval = _or_default(self.fault_ns, rtt_ns)
        hold = _or_default(self.hold_ns, max(HOLD_RTTS * rtt_ns, interval))
        warn = self._warn_bytes(topology, pause)
        if self.fault and hold < interval:
            raise IntentError(f"scheme rlb: hold must be at least interval, {interval} ns, found '{hold}'")
        dt = _or_default(self.dt_ns, delay_ns or USUAL_DT_NS)
        probe = _or_default(self.probe_ns, rtt_ns)
        slowest_bps = min((link.rate_bps for link in topology.links), default=1)
        longest_pause_ns = MAX_PAUSE_BITS * NS_PER_S // slowest_bps
        return self.resolved(
            ResolvedRlb,
            topology,
            context,
            program=f"{self.name}_{self.variant}",
            pause_bytes=pause,
            warn_bytes=warn,
            dt_ns=dt,
            margin_ns=_or_default(self.margin_ns, max(self.flows - 1, 1) * max(delay_ns, dt)),
            valid_ns=_or_default(self.valid_ns, min(longest_pause_ns, _MOST_VALID_NS)),
            probe_ns=probe,
            keep_ns=_or_default(self.keep_ns, _KEPT_PROBES * probe),
            fault_ns=interval,
            hold_ns=hold,
            gap_ns=_or_default(self.gap_ns, rtt_ns),
            cell_bytes=cell_bytes_of(self.cell_bytes, self.cell_packets, context),
        )

    def _warn_bytes(self, topology: Topology, pause: int) -> int:
        least, most = warn_bounds(topology, pause, self.flows)
        if least > most:
            raise IntentError(
                f"scheme rlb: no qth is possible in {topology.spec}: dC is {least} bytes, and with"
                f" flows={self.flows} only {most} bytes are left below pfc={pause}"
            )
        warn = min(max(pause // 4, least), most) if self.warn_bytes is None else self.warn_bytes
        if not least <= warn <= most:
            raise IntentError(
                f"scheme rlb: qth must be from {least} to {most} bytes in {topology.spec} (dC, and"
                f" pfc={pause} less dC for each of flows={self.flows} but one), found '{warn}'"
            )
        return warn


class ResolvedRlb(app.RlbSettings, frozen=True, kw_only=True):
    """RLB resolved for a network; `gap_ns` and `tiers` belong to the selector letflow, `cell_bytes` to
    presto, `memory` to drill.
    """

    @property
    def dense_groups(self) -> bool:
        """Algorithm 1 steps from slot to slot, and each must be a different port."""
        return True

    @property
    def flowlet_gap_ns(self) -> int | None:
        return self.gap_ns if self.variant == LETFLOW else None

    @property
    def recirculates(self) -> bool:
        """Algorithm 1 recirculates packets in line 6."""
        return True

    @property
    def pauses_at_bytes(self) -> int:
        """Q_PFC: the scheme needs PFC, because it predicts PFC's pauses."""
        return self.pause_bytes

    def entities(self, plan: EntryPlan) -> Iterator[P4Entity]:
        return app.entities(plan, self)

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:
        config = super().nic(topology, context, scale)
        return with_hermes(config, topology, self, scale) if self.variant == HERMES else config

    def watch(
        self, topology: Topology, target: Target, notify: Notify, time_text: FormatTime = format_time
    ) -> RlbWatcher:
        return RlbWatcher(topology, target, self.hold_ns, notify, time_text)

    def paths(self, topology: Topology) -> PathTable | None:
        return TagTable(topology) if self.variant == HERMES else None


def pause_bytes(topology: Topology, given: int | None, pfc_bytes: int | None) -> int:
    """Q_PFC, the common threshold of the scheme that predicts pauses and the switches that pause (§III-B.1).

    Args:
        topology: the network.
        given: the scheme's key pfc, which has precedence; None: not given.
        pfc_bytes: the threshold of the PFC spec; None: not given.
    """
    for threshold in (given, pfc_bytes):
        if threshold is not None:
            return threshold
    return max(PAUSE_BYTES, PAUSE_LINKS * in_flight_bytes(topology))


def warn_bounds(topology: Topology, pause: int, flows: int) -> tuple[int, int]:
    """The least and the largest Q_th in bytes, dC and Q_PFC - dC(n - 1). Within these bounds a warning comes
    before the pause, and ends before the queue is empty.
    """
    in_flight = in_flight_bytes(topology)
    return in_flight, pause - in_flight * (flows - 1)


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value
