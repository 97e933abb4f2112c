# SPDX-License-Identifier: Apache-2.0
"""The network that chaos happens to: a leaf-spine of native switches under Mininet, two controllers of one
role, hosts that send. Every process can be killed, by its recorded pid, and started again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import fabric_switches
import msgspec
from fabric_links import Links
from fabric_net import FabricNet
from fabric_plan import NATIVE, SwitchPlan, make_plan
from fabric_process import Process, end_all
from fabric_traffic import DRIVER, host_job

from soak.realtime.abuse import OTHER
from tailrace.controller.reconcile import differences
from tailrace.experiments.backends.job import Job, write_job
from tailrace.hosts.driver.job import HostsJob
from tailrace.hosts.flows.flow import FlowSpec
from tailrace.p4rt import programs
from tailrace.p4rt.channel import Address
from tailrace.p4rt.connection import GrpcConnection
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.errors import SwitchError
from tailrace.schemes.base import resolve
from tailrace.schemes.intent import intent
from tailrace.schemes.registry import parse_scheme
from tailrace.topology import parse_topology
from tailrace.words.scale import scaled

TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
TIME_SCALE = 1000.0
SCHEME = "ecmp"

SURVIVORS = ("leaf1", "spine1")
"""Switches that nobody kills; everything else happens to them, too."""
KILLED = ("leaf2", "spine2")
CONTROLLERS = ("controller1", "controller2")
"""The first one is not killed."""

FRAME_BYTES = 1100
FLOWS = 200
FLOW_BYTES = 32 << 10
FLOW_S = 0.3
"""Of each pair of hosts: so many flows, one in this time on average. Then they begin anew."""


class Place:
    """All processes and links. `up` starts them, `down` ends them in any case."""

    def __init__(self, out: Path, run_dir: Path, seed: int, log: Callable[[str, object], None]) -> None:
        """Nothing is started yet; `out` gets logs/, `run_dir` sockets, `log` what controllers say."""
        self.log = log
        self.topology = scaled(parse_topology(TOPOLOGY), TIME_SCALE)
        scheme = resolve(scaled(parse_scheme(SCHEME), TIME_SCALE), self.topology)
        self.job = Job(topology=self.topology, scheme=scheme, target=NATIVE, time_scale=TIME_SCALE)
        self.program = programs.load(scheme.program)
        self.logs, self._run_dir = out / "logs", run_dir
        self.logs.mkdir(parents=True, exist_ok=True)
        self.plan = make_plan(self.topology, NATIVE, run_dir, self.logs)
        self.plans = {plan.name: plan for plan in self.plan.switches}
        self.links = Links(self.plan, FRAME_BYTES)
        self.processes: dict[str, Process] = {}
        self.said: dict[str, dict[str, Any]] = {}
        self.started_s: dict[str, float] = {}
        self.flows_done = 0
        self._rng = random.Random(f"{seed}/flows")
        self._intents = intent(self.topology, scheme, self.job.switches)
        self._net: FabricNet | None = None
        self._readers: dict[str, GrpcConnection] = {}

    # ---- life ----

    def up(self) -> FabricNet:
        """Brings up switches, controllers and hosts. Raises FabricError."""
        fabric_switches.compile_ahead(self.program.path)
        fabric_switches.compile_ahead(programs.load(OTHER).path)
        self._net = FabricNet(self.plan, self._start_switch)
        fabric_switches.wait_ready({name: (plan, self.processes[name]) for name, plan in self.plans.items()})
        write_job(self.job, self._run_dir / "JOB.json")
        addresses = {name: Address(plan.address, plan.device_id) for name, plan in self.plans.items()}
        (self._run_dir / "switches.json").write_bytes(msgspec.json.encode(addresses))
        for name in CONTROLLERS:
            self.start(name)
        self.keep_sending()
        return self._net

    def down(self) -> None:
        """Ends all processes."""
        for reader in self._readers.values():
            reader.close()
        end_all(self.processes.values())

    def _start_switch(self, plan: SwitchPlan) -> Process:
        process = fabric_switches.start(plan, self.job.switches, self.job.scheme.queue_limit_bytes)
        self.processes[plan.name] = process
        self.started_s[plan.name] = time.monotonic()
        return process

    def start(self, name: str) -> None:
        """Starts a switch, controller or pair of hosts that has ended, or is started for the first time."""
        if name in self.plans:
            self._start_switch(self.plans[name])
            return
        files = [str(self._run_dir / file) for file in ("JOB.json", "switches.json")]
        words = ["soak.realtime.serve", *files]
        if name not in CONTROLLERS:
            words = [DRIVER, str(self._hosts_job(name))]
        process = Process(name, [sys.executable, "-m", *words], self.logs / f"{name}.log", piped=True)
        self.processes[name] = process
        self.started_s[name] = time.monotonic()
        self.said.pop(name, None)
        threading.Thread(target=self._listen, args=(name, process), daemon=True).start()

    def _listen(self, name: str, process: Process) -> None:
        with open(process.stdout.fileno(), encoding="utf-8", closefd=False) as lines:
            for line in lines:
                said = json.loads(line)
                if self.processes.get(name) is not process:
                    return
                if name in CONTROLLERS:
                    self.log(name, said)
                if "states" in said:
                    self.said[name] = said
                elif said["event"] == "ready" and name not in CONTROLLERS:
                    process.stdin.write("start\n")
                    process.stdin.flush()
                elif said["event"] == "progress":
                    self.said[name] = said

    def kill(self, name: str) -> float:
        """Ends a process at once, without its help; when that was, by the monotonic clock."""
        process = self.processes[name]
        at_s = time.monotonic()
        if not process.ended():
            os.killpg(process.pid, signal.SIGKILL)
        process.end()
        return at_s

    # ---- hosts ----

    def pairs(self) -> dict[str, tuple[str, str]]:
        """The processes of hosts, each with a host on either leaf."""
        first, second, third, fourth = (host.name for host in self.topology.hosts)
        return {"hosts1": (first, third), "hosts2": (second, fourth)}

    def keep_sending(self, pending: Callable[[str], bool] = lambda _: False) -> None:
        """Starts hosts whose flows are over, or that were killed, but those that are to stay away."""
        for name in self.pairs():
            if not pending(name) and (name not in self.processes or self.processes[name].ended()):
                if name in self.processes:
                    self.flows_done += self.said.get(name, {}).get("done", 0)
                    self.processes[name].end()
                self.start(name)

    def _hosts_job(self, name: str) -> Path:
        net = self._net
        assert net is not None
        hosts = [host for host in self.topology.hosts if host.name in self.pairs()[name]]
        starts = sorted(self._rng.uniform(0, FLOWS * FLOW_S) for _ in range(FLOWS))
        flows = []
        for number, start_s in enumerate(starts):
            src, dst = hosts if self._rng.random() < 0.5 else hosts[::-1]
            sport = self._rng.randrange(49152, 65536)
            flows.append(FlowSpec(number, src.ip, dst.ip, FLOW_BYTES, round(start_s * 1e9), number, sport))
        job = HostsJob(
            hosts=tuple(host_job(self.topology, net, host) for host in hosts),
            flows=tuple(flows),
            nic=self.job.nic,
            seed=self._rng.randrange(1 << 30),
            timeout_ns=round(2 * FLOWS * FLOW_S * 1e9),
        )
        path = self._run_dir / f"{name}.json"
        path.write_bytes(msgspec.json.encode(job))
        return path

    # ---- how far it is ----

    def states(self) -> Mapping[str, Mapping[str, Any]]:
        """What the controllers that run said last of the switches."""
        return {name: self.said[name] for name in self._controllers() if name in self.said}

    def _controllers(self) -> list[str]:
        return [name for name in CONTROLLERS if not self.processes[name].ended()]

    def reconciled(self) -> str:
        """Empty when every switch has one controller that is done with it and sees no link down, and others
        as backups, as far as the controllers know; else what is not so.
        """
        states = self.states()
        for name in self.plans:
            found = {one: states[one]["states"][name] if one in states else "" for one in self._controllers()}
            for controller, state in found.items():
                if state not in ("ready", "backup"):
                    return f"{controller}: {name} is {state or 'unknown'}"
            owners = [one for one, state in found.items() if state == "ready"]
            if len(owners) != 1:
                return f"{name} is ready for {len(owners)} controllers"
            if states[owners[0]]["down"]:
                return f"{owners[0]} sees {states[owners[0]]['down']} ends of links down"
        return ""

    def settled_s(self) -> float:
        """When the controllers came to what they said last."""
        return max(float(said["at_s"]) for said in self.states().values())

    def different(self) -> Iterator[str]:
        """What switches hold and should not, or the reverse, as a client of its own reads it."""
        for name, plan in self.plans.items():
            if name not in self._readers:
                self._readers[name] = GrpcConnection(name, plan.address, plan.device_id)
            client = self._readers[name].client
            try:
                if run_at_once(client.cookie()) != self.program.cookie:
                    yield f"{name} runs another program"
                    continue
                found = run_at_once(differences(client, self.program, self._intents[name].entities))
            except SwitchError as error:
                yield str(error)
                continue
            if found:
                yield f"{name} differs in {len(found)} entries"
