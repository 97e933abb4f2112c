# SPDX-License-Identifier: Apache-2.0
"""Fault injection in real time: native switches under Mininet, in separate namespaces (needs root).

    PYTHONPATH=mininet python -m checks.soak.chaos [--minutes M] [--scheme SPEC] [--seed N] [--out DIR]

In each round flows run while links fail, and switches and the controller are killed and restarted. Then all
flows must have ended, in order if the scheme promises order, and all switches must have their entries. In the
end no process and no file may be left. Exit codes: 0 passed, 1 failed, 2 bad input, 130 and 143 interrupted.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from fabric_report import FabricError, FabricReport, InputError
from fabric_sandbox import make_run_dir, run_sandboxed
from run_fabric import check_machine

from tailrace.experiments.plan.experiment import make
from tailrace.experiments.plan.plan import plan
from tailrace.sim.job import write_job
from tailrace.spec.arguments import ArgumentParser
from tailrace.spec.errors import Error

try:
    from fabric_control import ControllerProcess
    from fabric_faults import FaultStep
    from fabric_net import FabricNet
    from fabric_run import FabricRun
    from fabric_traffic import FabricTraffic
except InputError as no_mininet:
    sys.exit(f"soak.chaos: {no_mininet}")

FLOWCUT, CONTROLLER = "flowcut", "controller"
TAILRACE = Path(sys.executable).with_name("tailrace")
TOPOLOGY = "leaf-spine:leaves=2,spines=2,hosts=2,rate=10Gbps,delay=1us"
WORKLOAD = "random:flows=100,size=256KiB"
FAULTS, LAST_NS, LONGEST_NS, LIMIT_S = 8, 8_000_000_000, 3_000_000_000, 180.0
"""In each round: number of faults, latest begin and longest duration of a fault, and the time limit within
which all flows end and all entries are restored."""


class ChaosRun(FabricRun):
    """A run with faults. `subjects`: the processes of switches and controller by name."""

    def round(self, net: FabricNet, rng: random.Random) -> None:
        """Runs flows and faults. Raises FabricError: a process has failed, or a promise is broken."""
        faults = [step for _ in range(FAULTS) for step in self._fault(rng)]
        deadline_s = time.monotonic() + LIMIT_S

        def check_time(what: str = "not all flows have ended") -> None:
            if time.monotonic() > deadline_s:
                raise FabricError(f"{what} after {LIMIT_S:.0f} s")

        traffic = FabricTraffic(self.job, net, self._run_dir, self._logs, self.watch)
        self._processes.insert(0, traffic.process)
        traffic.wait_ready()
        flows = traffic.run(sorted(faults, key=lambda step: step.at_ns), self.report, check_time)["flows"]
        for repair in faults[1::2]:  # each fault is followed by its repair
            repair.act()
        packets = sum(flow["out_of_order"] for flow in flows)
        if packets and self.job.scheme.name.startswith(FLOWCUT):
            raise FabricError(f"{packets} packets out of order")
        while subprocess.run([TAILRACE, "diff"], capture_output=True, check=False).returncode:
            check_time("not all entries are restored")
            self.watch.poll()

    def _fault(self, rng: random.Random) -> tuple[FaultStep, FaultStep]:
        """A fault and its repair; both may be done several times."""
        begin_ns, name = rng.randrange(LAST_NS), rng.choice([*self.subjects, *["link"] * 5])
        end_ns = begin_ns + rng.randrange(LONGEST_NS)
        if name == "link":
            link = rng.choice([link for link in self._plan.links if link.a.node in self.subjects])
            name, fail, repair = link.name, *(partial(self.links.set_state, link, s) for s in ("down", "up"))
        else:
            fail, repair = partial(self._kill, name), partial(self._restart, name)
        return FaultStep(begin_ns, f"{name} fails", fail), FaultStep(end_ns, f"{name} is repaired", repair)

    def _kill(self, name: str) -> None:
        if not self.subjects[name].ended():
            self.watch.forget(self.subjects[name])
            os.killpg(self.subjects[name].pid, signal.SIGKILL)
            self.subjects[name].end()

    def _restart(self, name: str) -> None:
        if not self.subjects[name].ended():
            return
        if name == CONTROLLER:
            folders = self._run_dir, self._logs
            process = ControllerProcess(self._job_file, self._plan, *folders, self.run_file).process
            self._processes.insert(0, process)
            self.watch.listen(process, lambda _event: None)
        else:
            process = self._start_switch(next(s for s in self._plan.switches if s.name == name))
        self.watch.guard(process)
        self.subjects[name] = process

    def rounds(self, minutes: int) -> NoReturn:
        """Runs rounds until the time is over, then ends the process, which ends the sandbox.

        Raises:
            FabricError: as `round`, or the fabric does not come up.
        """
        start_s, rng, net = time.monotonic(), random.Random(f"{self.job.seed}/faults"), self.up()
        self.subjects = {name: process for name, (_, process) in net.switches.items()}
        self.subjects[CONTROLLER] = self._processes[0]
        self.round(net, rng)
        while time.monotonic() - start_s < 60 * minutes:
            self.round(net, rng)
        sys.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = ArgumentParser(prog="soak.chaos", description=__doc__, allow_abbrev=False)
    parser.add_argument("--minutes", type=int, default=5, help="duration (5)")
    parser.add_argument("--scheme", default=FLOWCUT, help=f"scheme of the switches ({FLOWCUT})")
    parser.add_argument("--seed", type=int, default=1, help="seed of flows and faults (1)")
    parser.add_argument("--out", type=Path, default=Path("out/chaos"), help="folder of the job and the logs")
    options = parser.parse_args(argv)
    spec = {"scheme": options.scheme, "topology": TOPOLOGY, "workload": WORKLOAD, "seed": options.seed}
    file = options.out / "JOB.json"
    try:
        job = plan(make(spec), "native").job
        check_machine(job)
        options.out.mkdir(parents=True, exist_ok=True)
        write_job(job, file)
        folder = make_run_dir()
        run = partial(ChaosRun, file, job, folder, FabricReport(as_text=True))
        code = run_sandboxed(lambda: run().rounds(options.minutes), folder)
    except (FabricError, Error, OSError) as error:
        print(f"soak.chaos: {' '.join(str(error).split())}", file=sys.stderr)
        return getattr(error, "exit_code", 2)
    except KeyboardInterrupt:
        return 130
    leftovers = [str(folder)] if folder.exists() else []
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            leftovers += [str(command.parent)] if os.fsencode(folder) in command.read_bytes() else []
    for name in leftovers:
        print(f"soak.chaos: left behind: {name}", file=sys.stderr)
    return code or bool(leftovers)


if __name__ == "__main__":
    sys.exit(main())
