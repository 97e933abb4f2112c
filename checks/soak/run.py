# SPDX-License-Identifier: Apache-2.0
"""Runs a scenario and reports the invariants that it violated.

order       schemes that promise order deliver every flow in order: Flowcut whatever fails (§II); schemes with
            one path for each flow, as long as nothing fails
end         every flow ends, or has one of the reasons in _cut_off
balance     every frame is accounted for, and none is left in a switch or on a link: none loops for ever
entries     in the end no switch counts bytes in flight, if no packet was lost
lossless    with PFC no data is dropped while nothing fails
pauses      in the end no queue is paused, and there is no deadlock (a cycle of pauses)
diff        every switch has the entities of its intent (those that it should have, given the links that stay
            dead) and one primary controller, which has detected these links
afterwards  flows that begin after all repairs end quickly, if the scheme keeps the order of packets
ends        switches keep no streams or calls of stopped controllers
code        no exception is raised
time        the run ends within LONGEST_S of real time, hundreds of times what it usually takes
"""

from __future__ import annotations

import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from msgspec import structs

from checks.soak.control import DisturbedController, dead_for_ever, quiet_ns
from checks.soak.scenario import Scenario
from tailrace.experiments.plan.plan import Plan
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.p4rt.events import LINK_DOWN, Event
from tailrace.results.result import Result
from tailrace.schemes.spritz.app import MINIMAL_MODE
from tailrace.schemes.spritz.bounded import ResolvedBounded
from tailrace.sim.control import ControlPlane, probe_interval_ns
from tailrace.sim.job import Job
from tailrace.sim.network import Network
from tailrace.sim.run import VirtualBackend
from tailrace.study.task import run as run_plan
from tailrace.topology import next_hops
from tailrace.topology.kinds import LEAF_SPINE
from tailrace.topology.paths.shapes import shape_of

SETTLE_ROUNDS = 400
"""Rounds of link probes, after all traffic and all faults, within which controllers must repair everything:
far more than any retry of a call, a stream or an election takes."""

LATE_ROUNDS = 24
"""Rounds from the last fault or disturbance to the late flows; by then usually all is repaired."""

LATE_FLOWS = 4
LATE_BYTES = 8 * 1024
FIRST_QPN = 0x800000
"""First queue pair number of the late flows; those of workloads are lower."""

SLOWDOWN = 30
"""A late flow may take at most this many times as long as in an idle network."""

LONGEST_S = 300.0

IN_ORDER = ("flowcut",)
"""Schemes that promise order whatever happens, by name."""

ONE_PATH = ("ecmp", "minimal:per=flow", "valiant:per=flow")
"""Schemes that keep a flow on one path while nothing fails, and so in order."""

IN_FLIGHT = ("flow_in_flight_bytes", "untracked_bytes")
"""Registers that count bytes in flight."""

LOSSES = ("link-down", "drop", "ack-loss", "blackhole", "switch-restart")
"""Faults that lose packets or ACKs, by name."""


@dataclass
class ScenarioResult:
    """The outcome of a scenario: problems as `promise: what is wrong`, and the digest of the run's trace."""

    problems: list[str] = field(default_factory=list)
    trace: str = ""

    @property
    def kinds(self) -> frozenset[str]:
        """The promises that were broken."""
        return frozenset(problem.partition(":")[0] for problem in self.problems)


def run(scenario: Scenario) -> ScenarioResult:
    """Runs a scenario. Raises nothing: every error becomes a problem of the result."""
    result = ScenarioResult()
    try:
        with _limited():
            _run(scenario, result)
    except _TooLongError:
        result.problems.append(f"time: it did not end within {LONGEST_S:.0f} s")
    except Exception as error:  # noqa: BLE001 - the purpose is to find these
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
        result.problems.append(f"code: {type(error).__name__} at {place}: {error}")
    return result


class _TooLongError(KeyboardInterrupt):
    """A KeyboardInterrupt, because asyncio catches other exceptions of a signal handler."""


@contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TooLongError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run(scenario: Scenario, outcome: ScenarioResult) -> None:
    planned = _with_late_flows(scenario.plan(), scenario)
    controls: list[DisturbedController] = []

    def make_control(network: Network, job: Job, happened: Callable[[Event], None]) -> ControlPlane:
        controls.append(DisturbedController(network, job, scenario, happened))
        return controls[0]

    def afterwards(network: Network) -> None:
        outcome.problems += _problems_when_quiet(network, controls[0], scenario)

    backend = VirtualBackend(control=make_control, afterwards=afterwards)
    result = run_plan(planned, backend, lambda _progress: None, label="soak")
    outcome.trace = str(result.summary.trace_sha256)
    outcome.problems += _problems_of_run(result, scenario, controls[0])


def _with_late_flows(planned: Plan, scenario: Scenario) -> Plan:
    """The plan with additional flows, which begin when all faults should be repaired."""
    job = planned.job
    hosts, start_ns = job.topology.hosts, _late_ns(scenario, job)
    first = max(flow.id for flow in job.flows) + 1
    # not larger than the plan's flows: queues are sized for the plan's largest frame
    size = min(LATE_BYTES, max(flow.bytes for flow in job.flows))
    late = [
        FlowSpec(first + n, hosts[n].ip, hosts[n - 1].ip, size, start_ns, FIRST_QPN + n, sport=50_000 + n)
        for n in range(min(LATE_FLOWS, len(hosts)))
    ]
    class_name = next(iter(planned.classes.values()), "")
    classes = (
        {**planned.classes, **{flow.id: class_name for flow in late}} if planned.classes else planned.classes
    )
    return replace(planned, job=structs.replace(job, flows=(*job.flows, *late)), classes=classes)


def _late_ns(scenario: Scenario, job: Job) -> int:
    """When the late flows begin."""
    last_ns = max((flow.start_ns for flow in job.flows), default=0)
    return max(
        quiet_ns(scenario, job) + LATE_ROUNDS * probe_interval_ns(job.topology, job.scheme.frame_bytes),
        last_ns + 1,
    )


def _problems_of_run(result: Result, scenario: Scenario, control: DisturbedController) -> Iterator[str]:
    summary = result.summary
    if not result.complete and not _cut_off(result, scenario):
        yield f"end: {summary.flows - summary.completed} of {summary.flows} flows did not end"
    in_order = _promises_order(scenario, control, result)
    if in_order and summary.packets.out_of_order:
        yield f"order: {summary.packets.out_of_order} packets out of order"
    rerouted = any(event.kind == LINK_DOWN for event in result.events)
    if not (_loses(scenario, control) or rerouted) and summary.packets.dropped_data:
        yield f"lossless: {summary.packets.dropped_data} data packets were dropped"
    if summary.deadlock:
        yield f"pauses: deadlock: {', '.join(summary.deadlock)}"
    late_ns = _late_ns(scenario, scenario.plan().job)
    earlier_flows_ended = all(
        row.start_ns == late_ns or (row.end_ns or late_ns) < late_ns for row in result.rows
    )
    repaired = control.stopped_ns is not None and control.stopped_ns <= late_ns
    if not (earlier_flows_ended and repaired and _keeps_order(scenario)):
        return  # the time that retransmissions take has no bound
    for row in result.rows:
        if row.start_ns == late_ns and row.slowdown is not None and row.slowdown > SLOWDOWN:
            yield f"afterwards: a flow took {row.fct_ns} ns; in an idle network {row.ideal_fct_ns}"


def _cut_off(result: Result, scenario: Scenario) -> bool:
    """Whether each flow that does not end has a reason: links that stay dead disconnect its hosts; the detour
    around such a link has more hops than there are channels, and is refused (docs/channels.md); or the
    scheme's paths have no detours (docs/schemes/spritz-details.md, Failed links).
    """
    job = scenario.plan().job
    dead = dead_for_ever(job)
    # Spritz's schemes: their paths are those of the network without failures
    fixed = isinstance(job.scheme, ResolvedBounded) and job.scheme.mode != MINIMAL_MODE
    if dead and (job.switches.channels > 0 or (fixed and not shape_of(job.topology).detours)):
        return True
    hops = next_hops(job.topology, dead)
    leaves = {host.name: host.switch for host in job.topology.hosts}
    ends = {(leaves[row.src], leaves[row.dst]) for row in result.rows if row.end_ns is None}
    return all(a != b and not (hops[a][b] and hops[b][a]) for a, b in ends)


def _promises_order(scenario: Scenario, control: DisturbedController, result: Result) -> bool:
    """Whether packets of a flow must arrive in order."""
    scheme, *keys = scenario.settings["scheme"].replace(":", ",").split(",")
    if scheme in IN_ORDER:
        # Not while switches have another scheme's entries. Stateless variants move flows at once when next
        # hops change, as after a link was wrongly declared down (docs/schemes/flowcut.md, its order).
        multi_hop = scenario.plan().job.topology.kind != LEAF_SPINE
        stateless = "variant=nic" in keys or ("variant=ingress" in keys and multi_hop)
        return not (scenario.chaos.old or (scenario.chaos.stale and stateless))
    calm = scenario.chaos.undisturbed and not scenario.faults and not control.crashes
    rerouted = any(event.kind == LINK_DOWN for event in result.events)
    return _keeps_order(scenario) and calm and not rerouted


def _keeps_order(scenario: Scenario) -> bool:
    """Whether the scheme keeps flows in order while nothing changes."""
    settings = set(scenario.settings["scheme"].replace(":", ",").split(","))
    return any(settings >= set(scheme.split(":")) for scheme in (*IN_ORDER, *ONE_PATH))


def _problems_when_quiet(network: Network, control: DisturbedController, scenario: Scenario) -> Iterator[str]:
    last_ns = max(network.now_ns, quiet_ns(scenario, scenario.plan().job))
    end_ns = last_ns + SETTLE_ROUNDS * control.interval_ns
    network.advance_to(last_ns)
    while not (control.reconciled and not control.violations()) and network.now_ns < end_ns:
        network.advance_to(network.now_ns + 4 * control.interval_ns)
    if not control.reconciled:
        yield f"diff: controllers are not reconciled: {control.describe()}"
    yield from control.violations()
    control.end()
    network.advance_to(network.now_ns + 4 * control.interval_ns)
    yield from (f"ends: {problem}" for problem in control.open_ends())
    account = network.account()  # how many frames were sent and made, and what became of them
    if not account.balanced:
        yield f"balance: {account}"
    if account.queued.frames or account.under_way.frames:
        yield f"balance: {account.queued.frames} frames wait, {account.under_way.frames} are under way"
    for switch in network.switches:
        core = network.switch(switch.name)
        if core.paused_queues(network.now_ns):
            yield f"pauses: {switch.name} has {len(core.paused_queues(network.now_ns))} paused queues"
        if not _loses(scenario, control) and not account.dropped_in_switches.frames:
            for register in core.model.registers:
                if register.name.rpartition(".")[2] in IN_FLIGHT:
                    nonzero = sum(1 for cell in core.register_read_all(register.index) if cell)
                    if nonzero:
                        yield f"entries: {switch.name}: {nonzero} cells of {register.name} are not 0"


def _loses(scenario: Scenario, control: DisturbedController) -> bool:
    """Whether packets may be lost."""
    names = {fault.partition(":")[0] for fault in scenario.faults}
    disturbed = not scenario.chaos.undisturbed or control.crashes > 0
    # Spritz's programs limit queues to one BDP, even with PFC (docs/schemes/spritz-details.md)
    scheme = scenario.plan().job.scheme
    bounded = isinstance(scheme, ResolvedBounded) and not scheme.trims
    return bool(names & set(LOSSES)) or disturbed or "pfc" not in scenario.settings or bounded
