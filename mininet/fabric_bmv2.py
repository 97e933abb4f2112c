# SPDX-License-Identifier: Apache-2.0
"""Sets BMv2's queue parameters and reads its registers over Thrift, since P4Runtime offers neither on BMv2.

BMv2 limits packets per second, separately for each priority. Data has a rate limit. Control frames have none:
they are small, have priority, and would count as full packets. Recirculated packets have a limit, too. RLB's
packets recirculate at the rate of a link, as on the other targets. Data that waits for a paused port
(p4src/pfc) recirculates at WAITING_FACTOR times the rate of the fastest port, at least at WAITING_PPS. A
higher limit delivers the next packet sooner after a resume, and takes more CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from fabric_plan import SwitchPlan
from fabric_report import FabricError

from tailrace.bmv2.thrift import ThriftClient
from tailrace.p4rt.programs import P4Program

WAITING_FACTOR = 3
WAITING_PPS = 500
_REGISTERS = {"closed_ticks": "pfc_closed_ticks", "most_bytes": "pfc_most_bytes"}


def packets_per_s(rate_bps: int, frame_bytes: int) -> int:
    """A rate in BMv2's unit, for frames of this length; at least 1, since 0 would be no limit."""
    return max(1, round(rate_bps / (8 * frame_bytes)))


def set_rate(client: ThriftClient, plan: SwitchPlan, port: int, packets: int) -> None:
    """Limits the rate of every priority at a port; control frames of our programs stay without a limit."""
    for priority in range(plan.priority_queues - plan.unlimited):
        client.set_queue_rate(port, priority, packets)


def recirculation_rates(
    plan: SwitchPlan, program: P4Program, frame_bytes: int, recirculation_bps: int | None, *, waits: bool
) -> dict[int, int]:
    """Rates, in packets/s, of the ports by which packets recirculate in a switch; other ports have no limit.

    Args:
        frame_bytes: length of a full data frame.
        recirculation_bps: rate of RLB's recirculation; None: the scheme does not recirculate.
        waits: whether data may wait for paused ports.
    """
    counts: dict[int, int] = {}
    if recirculation_bps is not None:
        counts[program.constant("mirror_port")] = packets_per_s(recirculation_bps, frame_bytes)
    if waits:
        fastest = max(port.rate_bps for port in plan.ports)
        packets = WAITING_FACTOR * packets_per_s(fastest, frame_bytes)
        counts[program.constant("waiting_port")] = max(WAITING_PPS, packets)
    return counts


def set_queues(
    plan: SwitchPlan, depth_packets: int, frame_bytes: int, recirculation: Mapping[int, int]
) -> None:
    """Sets depths and rates of the queues of a running switch; `recirculation`: from `recirculation_rates`.

    Raises:
        FabricError: the Thrift server does not answer, or refuses.
    """
    with thrift(plan.thrift_port, plan.name) as client:
        client.set_queue_depths(depth_packets)
        for port in plan.ports:
            set_rate(client, plan, port.number, packets_per_s(port.rate_bps, frame_bytes))
        for number, packets in recirculation.items():
            set_rate(client, plan, number, packets)


def pfc_registers(plan: SwitchPlan) -> dict[str, list[int]]:
    """For each port, how many ticks it was paused, and the peak of received bytes that waited in the switch.

    Raises:
        FabricError: the Thrift server does not answer.
    """
    with thrift(plan.thrift_port, plan.name) as client:
        return {name: client.register_read_all(register) for name, register in _REGISTERS.items()}


@contextmanager
def thrift(port: int, name: str) -> Iterator[ThriftClient]:
    """A connection to one simple_switch_grpc in this network namespace. `name`: its name in messages.

    Raises:
        FabricError: the server does not answer, or refuses a call inside the `with` block.
    """
    try:
        with ThriftClient(port) as client:
            yield client
    except OSError as error:
        raise FabricError(f"{name}: {error.strerror or error}") from error
