# SPDX-License-Identifier: Apache-2.0
"""Settings of NICs in lossless networks (RLB §II-A): of DCQCN's rate control, and of Hermes at the sender."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tailrace.hosts.errors import check_keys, check_setting
from tailrace.hosts.options.ranges import ABOVE_0, FROM_0, SHARE, RangeChecked
from tailrace.spec import keys

ADDITIVE_SHARE = 1000
"""Default of R_AI: the link's rate divided by this; 40 Mb/s at 40 Gb/s."""

HYPER_SHARE = 100
"""Default of R_HAI: the link's rate divided by this."""

RED_BYTES = (5_000, 200_000)
RED_PERMILLE = 10
RED_RATE_BPS = 40_000_000_000
"""RED marking in the deployment of DCQCN (Zhu et al., §5), at links of RED_RATE_BPS: Kmin and Kmax in bytes,
Pmax in 1/1000. Kmin and Kmax scale with the rate, like the bandwidth-delay product.
"""


@dataclass(frozen=True, slots=True)
class DcqcnConfig(RangeChecked):
    """The transport dcqcn: go-back-N paced by DCQCN (Zhu et al., SIGCOMM 2015).

    The defaults are those of the paper's 40 Gb/s data centres (§3.1, §5), with these assumptions:

    * Increases are shares of the link's rate, so that a flow needs the same number of steps back to line rate
      at any rate (as in the simulations of HPCC, SIGCOMM 2019). Times and the counter do not scale.
    * The paper gives no value for hyper increase. Here it is ten times the additive step, as in 802.1Qau,
      whose state machine the paper adopts.
    * The default of least_bps is that of 802.1Qau.

    alpha_ns must be more than cnp_ns. gain is rounded to a multiple of 2^-30.
    """

    cnp_ns: Annotated[
        int, keys.time("cnp", "minimum time between two CNPs of a receiver for a flow (N)", least=1)
    ] = 50_000
    alpha_ns: Annotated[
        int, keys.time("alpha", "time without a CNP after which alpha is reduced (K)", least=1)
    ] = 55_000
    gain: Annotated[
        float, keys.number("gain", "weight of the newest feedback in alpha (g)", above=0, most=1)
    ] = 1 / 256
    timer_ns: Annotated[
        int, keys.time("timer", "period of the timer that raises the rate after a cut (T)", least=1)
    ] = 55_000
    counter_bytes: Annotated[
        int,
        keys.size(
            "counter", "number of bytes sent after which the byte counter raises the rate (B)", least=1
        ),
    ] = 10_000_000
    recovery_steps: Annotated[
        int,
        keys.integer(
            "steps",
            "number of increases by timer or counter in fast recovery, towards the target rate (F)",
            least=0,
        ),
    ] = 5
    additive_bps: Annotated[
        int | None,
        keys.rate(
            "ai",
            "additive increase: step of the target rate after fast recovery (R_AI)",
            least=0,
            absent=f"1/{ADDITIVE_SHARE} of the link's rate",
        ),
    ] = None
    hyper_bps: Annotated[
        int | None,
        keys.rate(
            "hai",
            "hyper increase: step once timer and counter have each had more than `steps` increases (R_HAI)",
            least=0,
            absent=f"1/{HYPER_SHARE} of the link's rate",
        ),
    ] = None
    least_bps: Annotated[int, keys.rate("least", "minimum sending rate")] = 10_000_000
    nak_cnp: Annotated[
        bool,
        keys.flag(
            "nak_cnp", "a receiver sends a CNP with each NAK, also without ECN marks, as in ns-3 models"
        ),
    ] = False
    clamp: Annotated[
        bool,
        keys.flag(
            "clamp",
            "each CNP sets the target rate to the current rate (eq. 1); off: only the first CNP after a rise",
        ),
    ] = True


@dataclass(frozen=True, slots=True)
class HermesNicConfig:
    """Hermes at the sender (Zhang et al., SIGCOMM 2017): how it classifies paths, when flows change paths.

    Its authors recommend: T_ECN 40 %; T_RTT_low 20-40 us above the base RTT; T_RTT_high 1.5 times the delay
    of one hop above the base RTT; Delta_RTT the delay of one hop; Delta_ECN 3-10 %; R 20-40 % of the link's
    rate; S 100-800 KB. The delay of one hop is that of a queue at the marking threshold: 80 us at their
    10 Gb/s. Where they give a range, the default is its middle, except for S.

    base_rtt_ns: RTT without queueing; 0: the smallest RTT that the NIC has measured to the hosts which it
        reaches by the same paths (PathList.place).
    hop_ns: delay of one hop with a queue at the marking threshold: Delta_RTT; unit of rtt_low and rtt_high.
    rtt_low: a good path's RTT is below base_rtt_ns + rtt_low * hop_ns (30 us for 80 us).
    rtt_high: a congested path's RTT is above base_rtt_ns + rtt_high * hop_ns.
    ecn_threshold: T_ECN: a good path's share of marked packets is less, a congested path's is more.
    ecn_better: Delta_ECN: a notably better path's share of marked packets is smaller by more than this.
    size_bytes: S: a flow that has sent no more than this stays on a congested path. Assumption: 600 KB,
        within the range.
    rate_share: R: a flow that sends at this share of its link's rate or faster stays on a congested path.
    rate_ns: time over which sending rates are averaged. Assumption: that of CONGA (SIGCOMM 2014), whose
        estimator is used.
    timeouts: a path has failed after more than this number of timeouts without an acknowledgment in between.
    lost_share: a path that is not congested has failed if a larger share of its packets was retransmitted
        (1 %).
    interval_ns: time over which the share of retransmissions is measured (10 ms).
    least_packets: the share is not computed from fewer packets on a path. Assumption: 1 / lost_share, so that
        a single retransmission does not exceed lost_share.
    stale_ns: older measurements are ignored. Assumption: the interval of the authors' probes (500 us), each
        of which renews the state of a path.
    failed_ns: time for which a failed path is avoided. Assumption: ten times interval_ns.
    """

    base_rtt_ns: Annotated[int, FROM_0] = 0
    hop_ns: Annotated[int, FROM_0] = 80_000
    rtt_low: Annotated[float, FROM_0] = 0.375
    rtt_high: float = 1.5
    ecn_threshold: Annotated[float, SHARE] = 0.4
    ecn_better: Annotated[float, SHARE] = 0.05
    size_bytes: Annotated[int, FROM_0] = 600_000
    rate_share: Annotated[float, SHARE] = 0.3
    rate_ns: Annotated[int, ABOVE_0] = 160_000
    timeouts: Annotated[int, FROM_0] = 3
    lost_share: Annotated[float, SHARE] = 0.01
    interval_ns: Annotated[int, ABOVE_0] = 10_000_000
    least_packets: Annotated[int, FROM_0] = 100
    stale_ns: Annotated[int, ABOVE_0] = 500_000
    failed_ns: Annotated[int, ABOVE_0] = 100_000_000

    def __post_init__(self) -> None:
        """Raises ConfigError on invalid values."""
        check_keys(self)
        check_setting(
            self.rtt_high >= self.rtt_low,
            f"rtt_high is {self.rtt_high}, expected rtt_low or more, that is {self.rtt_low}",
        )
