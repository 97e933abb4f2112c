# SPDX-License-Identifier: Apache-2.0
"""Mininet's prompt on a running fabric, with link failures and the job's flows."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

from fabric_net import FabricNet
from fabric_report import FabricError
from fabric_run import FabricRun
from mininet.cli import CLI
from mininet.log import error, output

from tailrace.controller.timing import Timing
from tailrace.topology import Topology

IPERF_PORT, IPERF_S = 5001, 5
LISTEN_S = 5.0
_POLL_S = 0.05
_LISTEN = "0A"
"""The state LISTEN as /proc/net/tcp writes it."""


def welcome(topology: Topology) -> str:
    """What can be typed, with names of this topology."""
    first, last = topology.hosts[0].name, topology.hosts[-1].name
    lines = [f"try: {first} ping -c3 {last}    iperf {first} {last}    pingall    sh tailrace tables"]
    if topology.links:
        lines.append(f"     link {topology.links[0].a} {topology.links[0].b} down")
    lines.append("     traffic (the experiment's flows)    help    exit")
    return "\n".join(lines) + "\n"


def link_down_message(name: str, watch: Timing) -> str:
    """A message for the user: how a link that went down affects the flows over it."""
    noticed_s = watch.interval_s * (watch.missed + 1)
    return (
        f"{name} is down: flows over it lose what they send until the controller notices, for about"
        f" {noticed_s:g} s; then their next packet takes another path. TCP's next packet is a retransmission:"
        f" its timer doubles with each loss, so TCP may wait another {noticed_s:g} s and its first timeout\n"
    )


def _wait_listening(pid: int, port: int) -> None:
    """Waits until a TCP port is listened on in the namespace of a process."""
    deadline = time.monotonic() + LISTEN_S
    while True:
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
        if any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] == _LISTEN for line in lines):
            return
        if time.monotonic() > deadline:
            raise FabricError("iperf does not listen")
        time.sleep(_POLL_S)


class Prompt(CLI):
    """Its constructor reads commands until `exit`. `failures`: messages about processes that ended."""

    prompt = "mininet> "

    def __init__(self, run: FabricRun, net: FabricNet, results: socket.socket | None = None) -> None:
        """`results`: socket to the program that shows results. The prompt sends a byte when there is a
        result, and receives a byte when it has been shown. None: there is no such program.
        """
        self._run, self._net, self._results = run, net, results
        self.failures: list[str] = []
        self._leaving = threading.Event()
        watcher = threading.Thread(target=self._watch, name="watch", daemon=True)
        watcher.start()
        output(welcome(run.topology))
        try:
            super().__init__(net.mininet)
        finally:
            self._leaving.set()
            watcher.join()

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802 - Mininet's name
        """Skips Mininet's history file, which would stay in the user's home folder."""

    def _watch(self) -> None:
        while not self._leaving.is_set():
            self._run_command(self._run.watch.poll, self.failures)

    def _run_command(self, act: Callable[[], object], failures: list[str] | None = None) -> bool:
        """Runs a command; if it fails, prints the problem and returns false."""
        try:
            act()
        except FabricError as problem:
            error(f"{problem}\n")
            if failures is not None:
                failures.append(str(problem))
            return False
        return True

    def do_link(self, line: str) -> None:
        """Bring a link down or up: link NODE1 NODE2 down|up."""
        arguments = line.split()
        if len(arguments) != 3 or arguments[2] not in ("down", "up"):
            error("usage: link NODE1 NODE2 down|up\n")
            return
        links = self._net.plan.between(arguments[0], arguments[1])
        if not links:
            error(f"no link between {arguments[0]} and {arguments[1]}\n")
        for link in links:
            a, b, state = arguments
            text = f"{link.name} is {state}, at the prompt"
            change = partial(self._run.links.change, a, b, state == "up", text)
            if self._run_command(change) and state == "down":
                output(link_down_message(link.name, Timing()))

    def do_iperf(self, line: str) -> None:
        """Measure TCP between two hosts, by default the first and the last: iperf [HOST1 HOST2]."""
        names = line.split() or [self._net.mininet.hosts[0].name, self._net.mininet.hosts[-1].name]
        known = {host.name for host in self._net.mininet.hosts}
        if len(names) != 2 or not set(names) <= known:
            error("usage: iperf [HOST1 HOST2]\n")
            return
        client, server = (self._net.mininet[name] for name in names)
        # Mininet's command waits for a line that newer versions of iperf do not print
        listener = server.popen(["iperf", "-s"], stdout=DEVNULL, stderr=DEVNULL)
        try:
            self._run_command(partial(_wait_listening, server.pid, IPERF_PORT))
            output(client.cmd(f"iperf -f m -t {IPERF_S} -c {server.IP()}"))
        finally:
            listener.terminate()
            listener.wait()

    def do_traffic(self, _line: str) -> None:
        """Run the experiment's flows; show and save the result."""
        self._run_command(self._traffic)

    def _traffic(self) -> None:
        if not (self._run.job.flows or self._run.job.sources):
            raise FabricError("the experiment has no flows")
        result = self._run.traffic(self._net)
        done = sum(flow["end_ns"] is not None for flow in result["flows"])
        where = f"; see {self._run.out}" if self._results is None else ""
        output(f"{done} of {len(result['flows'])} flows are complete{where}\n")
        if self._results is not None:
            self._results.sendall(b".")
            self._results.recv(1)
