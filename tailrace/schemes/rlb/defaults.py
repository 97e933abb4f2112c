# SPDX-License-Identifier: Apache-2.0
"""Parameters of RLB that follow from the topology, and the bounds of its thresholds (RLB §III-B.3).

    d, C      the longest delay and the highest rate of a link between switches
    dt        d (§III-B.1: 2 us there)
    Q_PFC     256 KB (§II-B), at least 26 dC, which is the same at the paper's 40 Gbps and 2 us
    Q_th      in [dC, Q_PFC - dC(n - 1)]; a quarter of Q_PFC, moved into these bounds (assumption; Fig. 18:
              the lower, the better)
    margin    4 times d or dt, whichever is longer: a warning takes two links to the leaf, and what is under
              way takes two (assumption; §III-B.1 has "a given threshold")
    valid     the longest pause that PFC can ask for at the slowest link, for a port that is paused brings no
              packet at which a warning could be given again (assumption); else renewed after half of it
    probe     one base RTT (§V)
    age       of an RTT that still counts, 16 probe periods (assumption: a pause that lasts longer than that
              tells more of a path than the RTT before it)
    interval  of Algorithm 2, one base RTT (assumption: t_rc alone is a few packets here)
    hold      of a path that Algorithm 2 found faulty, 100 base RTTs, at least an interval (assumption)

Pure arithmetic on integers.
"""

from __future__ import annotations

from dataclasses import replace

from tailrace.schemes.errors import IntentError
from tailrace.schemes.rlb.declaration import LETFLOW, RlbConfig
from tailrace.topology import Topology

PAUSE_BYTES = 256_000
PAUSE_LINKS = 26
USUAL_DT_NS = 2_000
"""Where links have no delay."""

HOLD_RTTS = 100

_MARGIN_LINKS = 4
_KEPT_PROBES = 16
_LONGEST_PAUSE_BITS = 0xFFFF * 512
_MOST_VALID_NS = 4_000_000_000
"""What a warning has room for in nanoseconds."""

_NS = 1_000_000_000
_NS_BITS = 8 * _NS


def fabric_rate_bps(topology: Topology) -> int:
    """C: the highest rate between switches."""
    return max((link.rate_bps for link in topology.links), default=1)


def link_delay_ns(topology: Topology) -> int:
    """d: the longest delay between switches."""
    return max((link.delay_ns for link in topology.links), default=0)


def in_flight_bytes(topology: Topology) -> int:
    """dC, rounded up."""
    return -(-link_delay_ns(topology) * fabric_rate_bps(topology) // _NS_BITS)


def warn_bounds(topology: Topology, pause_bytes: int, flows: int) -> tuple[int, int]:
    """[dC, Q_PFC - dC(n - 1)]: a warning comes before the pause, and ends before the queue is empty."""
    one = in_flight_bytes(topology)
    return one, pause_bytes - one * (flows - 1)


def resolve_rlb(config: RlbConfig, topology: Topology, base_rtt_ns: int) -> RlbConfig:
    """The same scheme with every parameter filled in.

    Raises:
        IntentError: Q_th is out of its bounds, or there is none.
    """
    pause = config.pause_bytes
    if pause is None:
        pause = max(PAUSE_BYTES, PAUSE_LINKS * in_flight_bytes(topology))
    least, most = warn_bounds(topology, pause, config.flows)
    if least > most:
        raise IntentError(
            f"scheme rlb: no qth is possible in {topology.words}: dC is {least} bytes, and with"
            f" flows={config.flows} only {most} bytes are left below pfc={pause}"
        )
    warn = min(max(pause // 4, least), most) if config.warn_bytes is None else config.warn_bytes
    if not least <= warn <= most:
        raise IntentError(
            f"scheme rlb: qth must be from {least} to {most} bytes in {topology.words} (dC, and pfc={pause}"
            f" less dC for each of flows={config.flows} but one), found '{warn}'"
        )
    interval = _or(config.fault_ns, base_rtt_ns)
    hold = _or(config.hold_ns, max(HOLD_RTTS * base_rtt_ns, interval))
    if config.fault and hold < interval:
        raise IntentError(f"scheme rlb: hold must be at least interval, {interval} ns, found '{hold}'")
    delay = link_delay_ns(topology)
    dt = (delay or USUAL_DT_NS) if config.dt_ns is None else config.dt_ns
    probe = _or(config.probe_ns, base_rtt_ns)
    slowest_bps = min((link.rate_bps for link in topology.links), default=1)
    return replace(
        config,
        pause_bytes=pause,
        warn_bytes=warn,
        dt_ns=dt,
        margin_ns=_or(config.margin_ns, _MARGIN_LINKS * max(delay, dt)),
        valid_ns=_or(config.valid_ns, min(_LONGEST_PAUSE_BITS * _NS // slowest_bps, _MOST_VALID_NS)),
        probe_ns=probe,
        keep_ns=_or(config.keep_ns, _KEPT_PROBES * probe),
        fault_ns=interval,
        hold_ns=hold,
        gap_ns=base_rtt_ns if config.variant == LETFLOW and config.gap_ns is None else config.gap_ns,
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
