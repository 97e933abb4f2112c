# SPDX-License-Identifier: Apache-2.0
"""What was observed in the virtual network, for results: queues, paths of flows, what NICs have learnt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars

from tailrace.experiments.results.hf2t import Learned
from tailrace.experiments.results.timelines import PATH_COLUMNS, QUEUE_COLUMNS
from tailrace.hosts.nic.nic import Nic
from tailrace.native.virtual.observing import Samples, Sight
from tailrace.topology import Topology
from tailrace.words.constants import PS_PER_NS


def queue_table(samples: Samples, topology: Topology) -> polars.DataFrame:
    """A row a time and port, for ports in which something ever waited."""
    tables = [polars.DataFrame(schema=QUEUE_COLUMNS)]
    for index, (switch, port) in enumerate(samples.ports):
        queued = list(samples.queue_bytes(index))
        if not any(queued):
            continue
        count = len(queued)
        columns = {
            "time_ns": list(samples.times_ns),
            "switch": [switch] * count,
            "port": [port] * count,
            "peer": [topology.ports_of(switch)[port].name] * count,
            "queue_bytes": queued,
            "tx_bytes": list(samples.tx_bytes(index)),
            "paused": [bool(bits) for bits in samples.paused(index)],
        }
        tables.append(polars.DataFrame(columns, schema=QUEUE_COLUMNS))
    return polars.concat(tables)


def path_table(sights: Mapping[int, Sequence[Sight]], topology: Topology) -> polars.DataFrame:
    """A row a packet at a switch, by the number of its flow; packets without a number are left out."""
    rows = [
        (
            sight.time_ps // PS_PER_NS,
            flow,
            sight.switch,
            sight.in_port,
            topology.ports_of(sight.switch)[sight.in_port].name,
            sight.psn,
        )
        for flow, found in sights.items()
        for sight in found
        if sight.psn is not None
    ]
    return polars.DataFrame(rows, schema=PATH_COLUMNS, orient="row")


def learned(nics: Iterable[Nic]) -> tuple[Learned, ...]:
    """What each NIC has learnt that stretches gaps."""
    learners = [nic.learner for nic in nics]
    return tuple(Learned(one.t_ns, one.trainings) for one in learners if one is not None)
