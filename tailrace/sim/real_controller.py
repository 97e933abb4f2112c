# SPDX-License-Identifier: Apache-2.0
"""The real controller, that of real-time runs, in a network in virtual time: its sessions, elections, link
probes and reconciliation run over in-memory P4Runtime channels whose delays are drawn from the seed.

At the start of a run the switches already have their entries, as from an earlier controller, so even the
first packet is forwarded. The controller connects and reconciles. It detects faults by missing probes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from tailrace.controller.controller import Controller
from tailrace.controller.session import DEFAULT_ELECTION_ID
from tailrace.controller.timing import Timing
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.events import Event
from tailrace.p4rt.grpc_in_memory import ChannelModel, InMemoryGrpc
from tailrace.schemes.resolved import Resolved
from tailrace.schemes.watch import LinkEnd, SuppressedPath
from tailrace.sim.control import probe_interval_ns
from tailrace.sim.job import Job, RealControllerConfig
from tailrace.sim.network import Network
from tailrace.sim.network.loop import VirtualLoop
from tailrace.spec.constants import NS_PER_S
from tailrace.spec.units import format_time
from tailrace.switch.p4runtime.service import P4RuntimeService, rpc_handler
from tailrace.switch.p4runtime.statistics_service import statistics_handler
from tailrace.topology.paths.shortest import Down

LATENCY_SHARE = 0.1
"""The default message latency as a share of the probe interval: responses arrive before the next probe."""

SPREAD = 0.5
"""The largest deviation of a message delay from its mean, as a share of the mean."""


class RealController:
    """The real controller of one network, in one process."""

    def __init__(
        self, network: Network, job: Job, config: RealControllerConfig, happened: Callable[[Event], None]
    ) -> None:
        """`happened` is called with each event of the controller; the network does not run yet."""
        self._network, self._job, self._happened = network, job, happened
        self._loop = VirtualLoop(network)
        self._random = random.Random(f"control {job.seed}")
        self.memory = InMemoryGrpc(ChannelModel(self._delay_s))
        self._services: dict[str, P4RuntimeService] = {}
        for switch in job.topology.switches:
            network.p4rt(switch.name).hand_over()  # the in-process client stops being primary
            self._serve(switch.name)
        default = Timing()
        interval_ns = config.interval_ns or probe_interval_ns(job.topology, job.scheme.frame_bytes)
        self.timing = default.scaled(interval_ns / NS_PER_S / default.interval_s)
        self._latency_ns = config.latency_ns or max(1, round(interval_ns * LATENCY_SHARE))
        self.controller = self._make(DEFAULT_ELECTION_ID)
        self._task: asyncio.Task[None] | None = None

    def _make(self, election_id: int, scheme: Resolved | None = None) -> Controller:
        """A controller of all switches, not yet started, with the given scheme or else the job's."""
        job = self._job
        return Controller(
            job.topology,
            scheme or job.scheme,
            {switch.name: SwitchAddress(switch.name, switch.id) for switch in job.topology.switches},
            job.switches,
            timing=self.timing,
            election_id=election_id,
            on_event=self._happened,
            calls=self.memory,
            epoch_ns=0,  # events have virtual times, from 0
            when=format_time,
        )

    def _delay_s(self, _switch: str) -> float:
        return self._latency_ns * self._random.uniform(1 - SPREAD, 1 + SPREAD) / NS_PER_S

    # ---- switches ----

    def _serve(self, switch: str) -> None:
        """Starts the P4Runtime server of a switch."""
        endpoint, network = self._network.p4rt(switch), self._network
        service = P4RuntimeService(endpoint.device, endpoint.cpu, None, lambda: network.now_ns)
        statistics = {endpoint.device_id: endpoint.device.statistics}
        self._services[switch] = service
        self.memory.serve(switch, [rpc_handler(service), statistics_handler(statistics)])

    def _listen(self) -> None:
        """Delivers stream messages of all switches, again and again at intervals of the message latency."""
        self.catch_up()
        self._network.call_at(self._network.now_ns + self._latency_ns, self._listen)

    def catch_up(self) -> None:
        """Sends pending digests and packet-ins to the controller."""

        def deliver() -> None:
            for service in self._services.values():
                service.deliver_events()

        self._loop.run_ready(deliver)

    def switch_lost(self, switch: str) -> None:
        self._services.pop(switch, None)  # the switch may be restarting already
        self._loop.run_ready(lambda: self.memory.end(switch))

    def switch_restored(self, switch: str) -> None:
        self._loop.run_ready(lambda: self._serve(switch))

    # ---- the controller ----

    @property
    def down(self) -> Down:
        return self.controller.down

    @property
    def suppressed(self) -> Sequence[SuppressedPath]:
        return self.controller.suppressed

    def start(self) -> None:
        def begin() -> None:
            self._task = self._loop.create_task(self.controller.run())

        self._loop.run_ready(begin)
        self._listen()

    def notify_links(self, ends: Sequence[LinkEnd], at_ns: int, *, dead: bool) -> None:
        """Ignored: the controller detects link failures by probes."""

    def check(self) -> None:
        if self._task is not None and self._task.done():
            self._task.result()

    def stop(self) -> None:
        self._loop.end()
