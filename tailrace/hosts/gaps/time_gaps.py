# SPDX-License-Identifier: Apache-2.0
"""Measures the time gaps between a flow's packets, and stretches some (HF2T §4, hosts.gaps.hf2t)."""

from __future__ import annotations

from tailrace.hosts.gaps.hf2t import GO, Learner, Shaper
from tailrace.hosts.gaps.histogram import GapHistogram
from tailrace.hosts.options.nic import NicConfig


class NicTimeGaps:
    """The state that all flows of a NIC share.

    gaps: histogram of the gaps of all flows, after stretching; None: gaps are not counted.
    learner: learns which gaps are long; None: no gaps are stretched.
    late_ns: how long the link had been free when it asked for a packet; the packet counts as sent at the time
        at which the link became free.
    """

    __slots__ = ("_config", "_link_bps", "gaps", "late_ns", "learner")

    def __init__(self, config: NicConfig) -> None:
        """There are no gaps yet."""
        self._config = config.hf2t
        self._link_bps: int = config.link_rate_bps
        self.gaps: GapHistogram | None = GapHistogram() if config.measure_gaps else None
        self.learner: Learner | None = Learner(config.hf2t) if config.hf2t is not None else None
        self.late_ns = 0

    def for_flow(self, flow_bytes: int) -> FlowTimeGaps | None:
        """The gaps of a flow of this length; None: the flow's gaps are neither counted nor stretched."""
        config, learner = self._config, self.learner
        shaper: Shaper | None = None
        if config is not None and learner is not None and flow_bytes > config.spare_bytes:
            shaper = Shaper(config, learner, self._link_bps)
        if shaper is None and self.gaps is None:
            return None
        return FlowTimeGaps(self, shaper)


class FlowTimeGaps:
    """The gaps of one flow.

    shaper: stretches them; None: they are not stretched.
    """

    __slots__ = ("_last_ns", "_nic_gaps", "shaper")

    def __init__(self, nic_gaps: NicTimeGaps, shaper: Shaper | None) -> None:
        self._nic_gaps = nic_gaps
        self._last_ns = -1  # when the last packet was sent; -1: no packet has been sent
        self.shaper = shaper

    @property
    def moves(self) -> bool:
        """Whether the packet that was sent last takes a new path (`Shaper.moves`)."""
        return self.shaper is not None and self.shaper.moves

    def hold_ns(self, now_ns: int, frame_bytes: int) -> int:
        """Decides on a packet that could be sent now.

        Returns:
            GO: the packet is sent now, and counted as sent; or the time until which it is held.
        """
        nic_gaps, shaper = self._nic_gaps, self.shaper
        leaves_ns = now_ns - nic_gaps.late_ns
        if shaper is not None:
            until_ns = shaper.hold_ns(leaves_ns, self._last_ns, frame_bytes)
            if until_ns != GO:
                return until_ns
        if nic_gaps.gaps is not None and self._last_ns >= 0:
            nic_gaps.gaps.add(leaves_ns - self._last_ns)
        self._last_ns = leaves_ns
        return GO

    def forget(self) -> None:
        """There is no packet to send at present, so none is held."""
        if self.shaper is not None:
            self.shaper.forget()
