# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario under the eyes of every check, and says what they saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tailrace.p4rt.entities import P4TableAction, P4TableEntry
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.flowcut.declaration import ResolvedFlowcut
from tailrace.schemes.registry import parse_scheme
from tailrace.sim.network import Network
from tests.flowcut.flow_hash import flow_hash
from tests.flowcut.frames import Key
from tests.flowcut.oracle import MismatchError, Oracle, OracleConfig
from tests.flowcut.order import Identify, OrderCheck, scripted
from tests.flowcut.replay import Replay
from tests.flowcut.scenario import Scenario
from tests.flowcut.sources import attach
from tests.flowcut.watch import Watch
from tests.schemes.planned import intent

DUMPS = 12
"""Times at which all buckets in use are read in mid-run."""

DUMP_GAP_NS = 29_989
MOST_BUCKETS = 8
"""Buckets that are dumped; larger tables are read where flows are."""


def attach_scripts(network: Network, scenario: Scenario) -> Iterable[Key]:
    """NICs that follow the scenario's scripts."""
    return attach(network, scenario.scripts())


class Run:
    """A scenario with its network; close it by leaving the ``with`` statement."""

    def __init__(
        self,
        scenario: Scenario,
        attach_nics: Callable[[Network, Scenario], Iterable[Key]] = attach_scripts,
        identify: Identify = scripted,
    ) -> None:
        """`attach_nics` gives the hosts their NICs and flows; the flows' keys in the switches."""
        self.scenario = scenario
        self.network = scenario.network()
        topology = self.network.topology
        resolved = resolve(parse_scheme(scenario.scheme), topology)
        assert isinstance(resolved, ResolvedFlowcut)
        self.resolved = resolved
        self.plans = intent(topology, resolved, target("virtual"))
        self.flows = list(attach_nics(self.network, scenario))
        self.order = OrderCheck(self.network, identify)
        self.watches = {switch.name: Watch(self.network, switch.name) for switch in topology.switches}

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.network.close()

    def config(self, switch: str) -> ResolvedFlowcut:
        assert switch in self.plans
        return self.resolved

    def _written(self, switch: str, table: str) -> dict[str, int]:
        """The action data that the controller gave a keyless table."""
        for entity in self.plans[switch].entities:
            if isinstance(entity, P4TableEntry) and entity.table_id == table:
                assert isinstance(entity.action, P4TableAction)
                return {name: int(value) for name, value in entity.action.args.items()}
        raise AssertionError(f"{table} is not configured")

    def _baseline(self, switch: str) -> Iterator[tuple[int, tuple[int, int]]]:
        """What the controller says of idle round trips, by hops."""
        for entity in self.plans[switch].entities:
            if isinstance(entity, P4TableEntry) and entity.table_id == "rtt_baseline":
                assert entity.match is not None and isinstance(entity.action, P4TableAction)
                values = entity.action.args
                yield int(entity.match["hops"]), (int(values["least_ticks"]), int(values["before_ticks"]))

    def oracle(self, switch: str) -> Oracle:
        """The model with the parameters that the controller wrote into the switch."""
        table, drain, pause, hashing = (
            self._written(switch, n)
            for n in ("flowcut_config", "drain_config", "pause_config", "switch_config")
        )
        seed = hashing["hash_seed"] ^ hashing["switch_id"]
        config = OracleConfig(
            bucket_mask=table["bucket_mask"],
            age=table["age_ticks"],
            rtt_threshold=drain["rtt_threshold"],
            growth_threshold=drain["growth_threshold"],
            alpha=drain["alpha"],
            ticks_per_byte=drain["ticks_per_byte"],
            min_left=drain["min_left"],
            resume_bytes=drain["resume_bytes"],
            credit_bytes=pause["credit_bytes"],
            by_class=bool(pause["by_class"]),
            quanta=pause["quanta"],
            obey_bytes=pause["obey_bytes"],
            first_least_loaded=self.config(switch).first_path == "least-loaded",
            baseline=dict(self._baseline(switch)),
        )
        return Oracle(config, lambda key: flow_hash(key, seed))

    def buckets(self, switch: str) -> list[int]:
        """The buckets that the flows of this run fall into."""
        oracle = self.oracle(switch)
        return sorted({oracle.bucket_number(key) for key in self.flows})

    def go(self, *, dumps: bool = True) -> bool:
        """Runs to the end, with dumps in between; whether the network came to rest."""
        if dumps:
            places = [(w, self.buckets(name)[:MOST_BUCKETS]) for name, w in self.watches.items()]

            def read_all() -> None:
                for watch, buckets in places:
                    for bucket in buckets:
                        watch.read(bucket)

            for number in range(1, DUMPS):
                self.network.call_at(number * DUMP_GAP_NS, read_all)
        return self.network.run()

    def leftovers(self, *, sweep: bool = False) -> list[str]:
        """A line for each bucket of each switch that is not empty."""
        return [
            f"{name}: {dump}"
            for name, watch in self.watches.items()
            for dump in (watch.read(bucket, sweep=sweep) for bucket in self.buckets(name))
            if not dump.empty
        ]

    def pass_the_age(self) -> None:
        """Lets time pass until everything that is still counted must be lost."""
        age_ns = max(self.config(name).age_ns or 0 for name in self.watches)
        self.network.advance_to(self.network.now_ns + age_ns + 1)

    def compare_with_model(self) -> int:
        """Replays every switch; how many forwarding decisions were compared.

        Raises:
            MismatchError: a switch did what the model cannot explain.
        """
        decisions = 0
        for name, watch in self.watches.items():
            config, oracle = self.config(name), self.oracle(name)
            replay = Replay(
                watch, oracle, full=config.variant == "full", limit_bytes=config.queue_limit_bytes or 0
            )
            replay.check()
            decisions += replay.decisions
            self.compare_counters(name, oracle)
        return decisions

    def compare_counters(self, name: str, oracle: Oracle) -> None:
        """A switch's counters against those of a model that has seen the whole run.

        Raises:
            MismatchError: they differ.
        """
        switch = self.network.switch(name)
        counted = {
            counter: switch.counter_read(switch.model.counter(counter).index, 0)[1]
            for counter in vars(oracle.counts)
        }
        if counted != vars(oracle.counts):
            raise MismatchError(f"{name}: counters are {counted}, the model's {vars(oracle.counts)}")
