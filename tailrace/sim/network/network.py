# SPDX-License-Identifier: Apache-2.0
"""A network of compiled switches and NICs on one virtual clock.

    network = Network(topology, seed=7)
    network.p4rt("leaf1").set_pipeline(request)        # of each switch
    network.attach("h1", nic)
    network.link_rate("leaf1", "spine1", factor=0.1, at_ns=50_000)
    network.run()                                      # until every NIC is idle and nothing is under way
    network.now_ns, network.trace_sha256

A switch is a core.V1ModelSwitch; its traffic manager implements rates, queues and delays. The network is in C
(tv_net.h says how it runs); NICs, callbacks and taps are Python. The arguments and the seed determine
everything: the same calls give the same trace hash (of all frames that links deliver, with their times), on
every machine. Times in this interface are integer nanoseconds from 0; internally they are picoseconds.
"""

from __future__ import annotations

from types import TracebackType

from tailrace.sim.network.deadlock import QueueId, deadlock
from tailrace.sim.network.fabric import Progress
from tailrace.sim.network.faults import Faults
from tailrace.sim.network.observation import Observation
from tailrace.sim.network.ranks import RankTransport
from tailrace.sim.network.wire import NodePort
from tailrace.switch.core import SwitchConfig
from tailrace.topology import Topology

SWITCH_CONFIG = SwitchConfig(cpu_port=510, priority_queues=8, tick_ns=1, queue_depth_packets=0)
"""The default configuration of switches: queues have no limit other than the P4 program's."""


class Network(Faults, Observation):
    """A virtual network. Close it when it is no longer needed, or use it in a ``with`` statement."""

    def __init__(
        self,
        topology: Topology,
        *,
        config: SwitchConfig = SWITCH_CONFIG,
        seed: int = 0,
        stepwise: bool = False,
        transport: RankTransport | None = None,
    ) -> None:
        """Makes the switches and the wires (directions of links); hosts stay silent until a NIC is attached.

        Args:
            config: configuration of every switch, except for device id and seed, which differ by switch.
            seed: seed of all random numbers in the network.
            stepwise: handle the instants (times with events) one by one; slower, with the same results.
            transport: exchanges messages with the other ranks. This process then runs the part of the network
                that `topology.partition` assigns to its rank; all ranks make the same calls, except `attach`
                and calls to single switches. None: this process runs the whole network.

        Raises:
            SpecError: the topology cannot be divided into as many parts as there are ranks.
            BuildError: the C part cannot be compiled.
        """
        super().__init__(topology, config, seed, transport)
        self._net.set_stepwise(stepwise)

    def close(self) -> None:
        """Closes captures and frees the switches; counters can still be read.

        Raises:
            NetworkError: the rest of a capture cannot be written.
        """
        try:
            self._net.close()
        finally:
            for endpoint in self._endpoints.values():
                endpoint.device.close()
            for switch in self._switches.values():
                switch.close()

    def __enter__(self) -> Network:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Frees the switches."""
        self.close()

    def run(self, until_ns: int | None = None, *, progress: Progress | None = None) -> bool:
        """Runs until every NIC is idle and no frame is under way, or until no event is left.

        If the network comes to rest, the time is then that of the last frame's arrival or sending.

        Args:
            until_ns: stop at this time; `run` can be called again to continue.
            progress: called with the virtual time and the number of events every PROGRESS_EVENTS events;
                with several ranks it is called at the same times in all, with each rank's own events.

        Returns:
            whether the network is at rest.
        """
        self._advance(until_ns, stop_at_rest=True, progress=progress)
        return self.at_rest

    def deadlock(self) -> tuple[QueueId, ...]:
        """A cycle of queues that are paused for ever, each waiting for the next one (deadlock.py); empty if
        there is none. With several ranks each must make this call.
        """
        # by switch id: bytes in paused queues, by the sender from which they came
        local = {item.id: self.switch(item.name).paused_queues(self.now_ns) for item in self.switches}
        names = {item.id: item.name for item in self.topology.switches}
        held = {names[number]: queues for number, queues in self.gathered(local).items()}
        return deadlock(held, self._neighbour)

    def _neighbour(self, switch: str, port: int) -> NodePort | None:
        peer = self.topology.ports_of(switch).get(port)
        return None if peer is None or peer.kind != "switch" else NodePort(peer.name, peer.port)

    def advance_to(self, time_ns: int) -> None:
        """Advances virtual time to `time_ns`, even if the network is at rest before."""
        self._advance(time_ns, stop_at_rest=False, progress=None)
