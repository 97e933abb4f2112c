# SPDX-License-Identifier: Apache-2.0
"""FlowBender: NICs change a flow's source port when its packets are ECN-marked (Kabbani et al., CoNEXT'14).

Switches run plain ECMP; queues mark, by default from a fifth to four fifths of a BDP (assumption: the paper
has DCTCP's single threshold). With the transport `dctcp`, ACKs report the mark of every packet; with other
transports, an ACK reports only the mark of the packet that it echoes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, ClassVar

from tailrace.hosts.options.nic import FLOWBENDER, MARKED_SHARE, NicConfig, SteeringConfig
from tailrace.schemes.base import SchemeConfig, scheme
from tailrace.schemes.blocks.basic import ResolvedBasic, SourcePortPaths
from tailrace.schemes.ecmp import EcmpConfig
from tailrace.schemes.resolved import SchemeContext
from tailrace.spec import keys
from tailrace.topology import Topology
from tailrace.topology.timing import base_rtt_ns

PORTS = 1024
"""Source ports among which a flow chooses; many more than a network has paths."""


@scheme
class FlowBenderConfig(SchemeConfig, frozen=True, kw_only=True):
    """A flow changes its source port after `epochs` epochs in a row with more than `share` of packets marked.

    epoch_ns: length of an epoch; None: one round-trip time of the idle network
    """

    name: ClassVar[str] = "flowbender"
    title: ClassVar[str] = "FlowBender"
    about: ClassVar[str] = "NICs change a flow's UDP source port when its packets are ECN-marked"
    marks_queues: ClassVar[bool] = True
    made_for: ClassVar[tuple[str, ...]] = ("dctcp",)
    share: Annotated[
        float,
        keys.number("share", "share of marked packets above which an epoch is congested", least=0, most=1),
    ] = MARKED_SHARE
    epochs: Annotated[
        int,
        keys.integer(
            "epochs", "number of consecutive congested epochs after which the path changes", least=1
        ),
    ] = 1
    epoch_ns: Annotated[int | None, keys.time("epoch", "length of an epoch", least=1, absent="base RTT")] = (
        None
    )

    def resolve(self, topology: Topology, context: SchemeContext) -> ResolvedFlowBender:
        epoch_ns = base_rtt_ns(topology, context.frame_bytes) if self.epoch_ns is None else self.epoch_ns
        return self.resolved(
            ResolvedFlowBender, topology, context, program=EcmpConfig.name, epoch_ns=epoch_ns
        )


class ResolvedFlowBender(ResolvedBasic, frozen=True, kw_only=True):
    share: float
    epochs: int
    epoch_ns: int

    def nic(self, topology: Topology, context: SchemeContext, scale: float) -> NicConfig:
        steering = SteeringConfig(
            algorithm=FLOWBENDER, marked_share=self.share, epochs=self.epochs, epoch_ns=self.epoch_ns
        )
        return replace(super().nic(topology, context, scale), steering=steering)

    def paths(self, topology: Topology) -> SourcePortPaths:  # noqa: ARG002 - the same in every topology
        return SourcePortPaths(PORTS)
