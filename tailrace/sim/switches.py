# SPDX-License-Identifier: Apache-2.0
"""Switches of a network in virtual time: configuration from the job, and PFC counters."""

from __future__ import annotations

from msgspec.structs import replace

from tailrace.schemes.program import ResolvedProgram
from tailrace.sim.job import Job
from tailrace.sim.network import Network
from tailrace.sim.network.network import SWITCH_CONFIG
from tailrace.sim.outcome import PfcSeen
from tailrace.sim.pfc import pfc_seen
from tailrace.spec.watchdog import of_port
from tailrace.switch.core import BufferConfig, PfcConfig, SwitchConfig
from tailrace.switch.p4runtime.statistics import statistics
from tailrace.topology.pfc import Thresholds
from tailrace.topology.timing import fabric_rate_bps


def switch_config(job: Job) -> SwitchConfig:
    """The configuration of switches: PFC of the data class if the job has PFC, and a limited rate of
    recirculation if the scheme recirculates packets.
    """
    rate_bps = fabric_rate_bps(job.topology) if job.scheme.recirculates else 0
    base = SWITCH_CONFIG if not isinstance(job.scheme, ResolvedProgram) else _foreign_config(job.scheme)
    config = replace(base, recirc_rate_bps=rate_bps)
    thresholds = job.pfc
    if thresholds is None:
        return config
    pfc = _pfc_config(job, thresholds)
    size = thresholds.buffer_bytes
    buffer = None if size is None else BufferConfig(size, thresholds.alpha, thresholds.port_bytes)
    return replace(config, pfc=pfc, buffer=buffer)


def _foreign_config(scheme: ResolvedProgram) -> SwitchConfig:
    """simple_switch's settings with a limit of queues, which our own programs have themselves."""
    return SwitchConfig(
        tick_ns=scheme.tick_ns,
        queue_depth_packets=scheme.depth_packets,
        queue_depth_bytes=scheme.queue_limit_bytes,
    )


def _pfc_config(job: Job, thresholds: Thresholds) -> PfcConfig:
    """PFC of ports between switches. With virtual channels, one priority (class) per hop
    (docs/reference/channels.md), packets that enter by such a port are queued in the next class (`rise`).
    """
    classes = thresholds.lossless(job.nic.data_priority)
    sizes = (thresholds.xoff_bytes, thresholds.xon_bytes, thresholds.headroom_bytes)
    return PfcConfig(classes, *sizes, watchdog=thresholds.watchdog, rise=thresholds.rise)


def guard_hosts(network: Network, job: Job) -> None:
    """Sets up ports to hosts: no channels, and a stricter PFC watchdog for pauses that hosts send."""
    thresholds = job.pfc
    if thresholds is None:
        return
    config = _pfc_config(job, thresholds)
    for host in network.hosts:
        watchdog = of_port(
            thresholds.watchdog, host=True, rate_bps=host.rate_bps, xoff_bytes=thresholds.xoff_bytes
        )
        edge = replace(config, priorities=config.priorities[:1], watchdog=watchdog, rise=0)
        network.switch(host.switch).port_pfc(host.port, edge)


def pfc_counts(network: Network, job: Job) -> PfcSeen | None:
    """The PFC counters of all switches, summed up; None if the job has no PFC."""
    if job.pfc is None:
        return None
    local = {
        switch.id: statistics(network.switch(switch.name), job.topology.ports_of(switch.name), network.now_ns)
        for switch in network.switches
    }
    counts = list(network.gathered(local).values())
    return pfc_seen(counts, job.pfc.lossless(job.nic.data_priority), network.now_ns)
