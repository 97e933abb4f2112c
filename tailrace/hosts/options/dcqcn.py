# SPDX-License-Identifier: Apache-2.0
"""Settings of what NICs do in lossless networks (RLB §II-A): the rate control DCQCN, and Hermes' sensing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tailrace.hosts.errors import check_keys, check_setting
from tailrace.hosts.options.ranges import ABOVE_0, FROM_0, SHARE, RangeChecked
from tailrace.spec import keys

ADDITIVE_SHARE = 1000
"""R_AI is the link's rate divided by this: 40 Mb/s of 40 Gb/s."""

HYPER_SHARE = 100
"""R_HAI likewise."""

RED_BYTES = (5_000, 200_000)
RED_PERMILLE = 10
RED_RATE_BPS = 40_000_000_000
"""How queues mark in the paper's deployment (§5), from which length to which and up to what share, at that
rate; lengths grow with the rate, as what is under way does.
"""


@dataclass(frozen=True, slots=True)
class DcqcnConfig(RangeChecked):
    """The transport dcqcn: go-back-N paced by DCQCN (Zhu et al., SIGCOMM 2015).

    The values are those that the paper uses in its data centres of 40 Gb/s (§3.1, §5), but where they are
    called an assumption. Increases are shares of the link's rate, so that a flow needs as many steps back to
    it at any rate (assumption; so do the simulations of HPCC, SIGCOMM 2019); times and the counter stay as
    they are. alpha_ns must be more than cnp_ns. gain is rounded to a multiple of 2^-30. Of the hyper increase
    the paper has the phase and no number: in 802.1Qau, whose state machine it takes over, it is ten times the
    additive step (assumption); least_bps is the default there (assumption).
    """

    cnp_ns: Annotated[
        int, keys.time("cnp", "a receiver sends at most one CNP of a flow in this time (N)", least=1)
    ] = 50_000
    alpha_ns: Annotated[int, keys.time("alpha", "alpha falls after this time without a CNP (K)", least=1)] = (
        55_000
    )
    gain: Annotated[
        float, keys.number("gain", "weight of the newest feedback in alpha (g)", above=0, most=1)
    ] = 1 / 256
    timer_ns: Annotated[int, keys.time("timer", "the rate rises this often after a cut (T)", least=1)] = (
        55_000
    )
    counter_bytes: Annotated[
        int, keys.size("counter", "and whenever so many bytes of frames have been sent (B)", least=1)
    ] = 10_000_000
    recovery_steps: Annotated[
        int,
        keys.integer(
            "steps", "rises by either that only halve the way back to the rate before the cut (F)", least=0
        ),
    ] = 5
    additive_bps: Annotated[
        int | None,
        keys.rate(
            "ai",
            "what the target rate gains in each rise after these (R_AI)",
            least=0,
            absent=f"a {ADDITIVE_SHARE}th of the link",
        ),
    ] = None
    hyper_bps: Annotated[
        int | None,
        keys.rate(
            "hai",
            "what it gains once timer and counter are both beyond them",
            least=0,
            absent=f"a {HYPER_SHARE}th of the link",
        ),
    ] = None
    least_bps: Annotated[int, keys.rate("least", "no cut goes below")] = 10_000_000
    nak_cnp: Annotated[
        bool, keys.flag("nak_cnp", "a CNP goes with each NAK, whatever was marked, as in models of NS-3")
    ] = False
    clamp: Annotated[
        bool,
        keys.flag(
            "clamp",
            "every CNP takes the present rate for the one to return to (eq. 1); off: only one after a rise",
        ),
    ] = True


@dataclass(frozen=True, slots=True)
class HermesNicConfig:
    """Hermes at the sender (Zhang et al., SIGCOMM 2017): what its paths are like, and when a flow leaves one.

    Its authors recommend: T_ECN 40 %, T_RTT_low 20-40 us and T_RTT_high 1.5 times the delay of one hop above
    the base RTT, Delta_RTT the delay of one hop, Delta_ECN 3-10 %, R 20-40 % of the link, S 100-800 KB. The
    delay of one hop is that of a queue at which marking begins: 80 us at 10 Gb/s there. Where they give a
    range, the defaults are in its middle, S excepted.

    base_rtt_ns: a round trip without queues; 0: the smallest one that the NIC has seen to the place.
    hop_ns: delay of one hop whose queue is marked: Delta_RTT, and what the two thresholds are made of.
    rtt_low: a good path's RTT is below base_rtt_ns and so many hop_ns (30 of 80 us).
    rtt_high: a congested path's RTT is above base_rtt_ns and so many hop_ns.
    ecn_threshold: T_ECN, share of marked packets: a good path's is below, a congested path's above.
    ecn_better: Delta_ECN, by which the share of a notably better path is less.
    size_bytes: S: a flow that has sent no more than this keeps a congested path. Assumption: 600 KB,
        within the range.
    rate_share: R: so does one that sends at this share of its link or faster.
    rate_ns: time over which sending rates are averaged. Assumption: that of CONGA (SIGCOMM 2014), whose
        estimator it is.
    timeouts: more of them on a path, with nothing acknowledged meanwhile, are a failure.
    lost_share: so is a larger share of retransmissions on a path that is not congested (1 %).
    interval_ns: time over which this share is taken (10 ms).
    least_packets: an interval in which a path has got fewer packets is not judged. Assumption: so many
        that a single retransmission is no more than lost_share.
    stale_ns: what was sensed longer ago counts no more. Assumption: the interval of the authors' probes
        (500 us), which bring news of every path by then.
    failed_ns: so long a path that has failed is not taken. Assumption: ten times interval_ns.
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
        """Raises ConfigError on values that make no sense."""
        check_keys(self)
        check_setting(
            self.rtt_high >= self.rtt_low,
            f"rtt_high is {self.rtt_high}, expected rtt_low or more, that is {self.rtt_low}",
        )
