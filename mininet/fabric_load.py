# SPDX-License-Identifier: Apache-2.0
"""Detects an overloaded machine, on which measurements are not valid.

Five things are measured while traffic runs:

* how long the processes waited for a CPU per dispatch, compared with the time that a full frame takes on the
    fastest link: waits of a good part of this time distort queues and round-trip times;
* how long they waited for a CPU in all, compared with their run time, while other processes used the CPUs:
    many switches on few CPUs also wait for each other, which is harmless as long as each wait is short;
* which share of all CPUs they used: if they use them all, the CPUs limit the throughput instead of the links;
* frames that the kernel dropped, or that reached an interface but no program, because a socket overflowed;
* how late the hosts' driver sent frames, as the driver reports (see fabric_traffic.py).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from fabric_process import run

LATE_SHARE = 0.25
"""A process that waits for this share of a frame's time, on average, is late."""

MOST_WAITING = 2
"""Limit of the processes' time of waiting for a CPU, as a multiple of their run time. Measured on two cores:
5 to 6 beside a load of 15; without other load 1.3 (default network, native switch), 2.4 (the same on BMv2),
3.6 (20 native switches).
"""

OTHER_SHARE = 0.25
"""Share of all CPUs that other processes may use meanwhile; the controller and this harness are among these.
"""

MOST_OF_CPUS = 0.8
"""Share of all CPUs above which they limit the switches and hosts of a run. Measured on two cores: 67 % where
Flowcut keeps up (native switch), 94 % where it does not (BMv2, 9,100 times slower).
"""

SAMPLE_S = 0.5

_FEW_DISPATCHES = 200
_FEW_FRAMES = 3
"""Tolerated difference of counts: control frames may be in flight while counters are read."""


@dataclass(frozen=True, slots=True)
class CpuUsage:
    """CPU use of a process with all its threads: run and waited in ns, times it was put on a CPU."""

    run_ns: int = 0
    waited_ns: int = 0
    dispatches: int = 0

    def since(self, earlier: CpuUsage) -> CpuUsage:
        """The difference to an earlier reading; at least 0, as threads that ended are no longer counted."""
        return CpuUsage(
            max(0, self.run_ns - earlier.run_ns),
            max(0, self.waited_ns - earlier.waited_ns),
            max(0, self.dispatches - earlier.dispatches),
        )

    @property
    def mean_wait_ns(self) -> float:
        """Mean wait per dispatch; 0 if there were too few dispatches."""
        return self.waited_ns / self.dispatches if self.dispatches >= _FEW_DISPATCHES else 0.0


@dataclass(frozen=True, slots=True)
class Interface:
    """Frames that an interface has received and dropped since it was made."""

    received: int
    dropped: int


def usage(pid: int) -> CpuUsage:
    """The CPU use of a process so far; zeros if it has ended or the kernel does not count it."""
    total = [0, 0, 0]
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        try:
            total = [a + int(b) for a, b in zip(total, path.read_text().split(), strict=True)]
        except (OSError, ValueError):
            continue
    return CpuUsage(*total)


def busy_s() -> float:
    """CPU time of all processes of the machine so far, in s: user, nice and system of proc_stat(5)."""
    fields = Path("/proc/stat").read_text().split(maxsplit=4)
    return sum(map(int, fields[1:4])) / os.sysconf("SC_CLK_TCK")


def interfaces() -> dict[str, Interface]:
    """All interfaces of this namespace.

    Raises:
        FabricError: they cannot be read.
    """
    counted = {}
    for link in json.loads(run(["ip", "-statistics", "-json", "link"])):
        rx, tx = link["stats64"]["rx"], link["stats64"]["tx"]
        counted[link["ifname"]] = Interface(rx["packets"], rx["dropped"] + tx["dropped"])
    return counted


class LoadWatch:
    """Compares two readings of the machine's counters, at the start and at the end of the traffic."""

    def __init__(self, pids: Mapping[str, int], frame_ns: int, taken: Mapping[str, int]) -> None:
        """Takes the first reading.

        Args:
            pids: the switches and the hosts' driver, by name.
            frame_ns: time of a full frame on the fastest link.
            taken: frames that programs have read from interfaces so far; counted before this call, so that no
                frame in flight looks lost.
        """
        self._pids = dict(pids)
        self._frame_ns = frame_ns
        self._taken = dict(taken)
        self._interfaces = interfaces()
        self._usage = {name: usage(pid) for name, pid in self._pids.items()}
        self._latest = dict(self._usage)
        self._busy_s = self._latest_busy_s = busy_s()
        self._start = self._sampled = time.monotonic()

    def sample(self) -> None:
        """Records CPU use, at most every SAMPLE_S: it cannot be read after a process has ended."""
        now = time.monotonic()
        if now - self._sampled < SAMPLE_S:
            return
        self._sampled, self._latest_busy_s = now, busy_s()
        for name, pid in self._pids.items():
            used = usage(pid)
            if used != CpuUsage():
                self._latest[name] = used

    def reasons(self, seen: Mapping[str, Interface], taken: Mapping[str, int]) -> list[str]:
        """Takes the second reading, and compares it with the first; returns reasons to distrust the run.

        Args:
            seen: the interfaces now, read before the programs' counters, without those of links that failed
                on purpose, where frames may get lost.
            taken: frames that programs have read by now, by interface; other interfaces are not compared.
        """
        used = {name: used.since(self._usage[name]) for name, used in self._latest.items()}
        return [*self._late(used), *self._dropped(seen), *self._overrun(seen, taken)]

    def _late(self, used: Mapping[str, CpuUsage]) -> Iterable[str]:
        limit = LATE_SHARE * self._frame_ns
        late = {name: use.mean_wait_ns for name, use in used.items() if use.mean_wait_ns > limit}
        if late:
            worst = max(late, key=lambda name: late[name])
            more = f" and {len(late) - 1} more" if len(late) > 1 else ""
            yield (
                f"{worst}{more} waited {late[worst] / 1e3:.0f} us for a CPU each time, "
                f"over {LATE_SHARE:.0%} of the {self._frame_ns / 1e3:.0f} us that a frame takes"
            )
            return
        total = CpuUsage(*(sum(getattr(use, name) for use in used.values()) for name in CpuUsage.__slots__))
        run_s, waited_s = total.run_ns / 1e9, total.waited_ns / 1e9
        other_s = self._latest_busy_s - self._busy_s - run_s
        cpus_s = (os.cpu_count() or 1) * (self._sampled - self._start)
        if total.dispatches < _FEW_DISPATCHES:
            return
        if run_s > MOST_OF_CPUS * cpus_s:
            yield (
                f"switches and hosts used {run_s / cpus_s:.0%} of all CPUs, over {MOST_OF_CPUS:.0%}: "
                "the CPUs limit the throughput, not the links (a larger --time-scale is needed)"
            )
        elif waited_s > MOST_WAITING * run_s and other_s > OTHER_SHARE * cpus_s:
            yield (
                f"switches and hosts ran for {run_s:.1f} s and waited for a CPU for {waited_s:.1f} s, "
                f"over {MOST_WAITING} times as long, while other processes ran for {other_s:.1f} s"
            )

    def _dropped(self, seen: Mapping[str, Interface]) -> Iterable[str]:
        lost = {
            name: now.dropped - self._interfaces[name].dropped
            for name, now in seen.items()
            if name in self._interfaces and now.dropped > self._interfaces[name].dropped
        }
        if lost:
            yield f"the kernel dropped {sum(lost.values())} frames at {', '.join(sorted(lost))}"

    def _overrun(self, seen: Mapping[str, Interface], taken: Mapping[str, int]) -> Iterable[str]:
        for name, count in taken.items():
            if name in self._taken and name in self._interfaces and name in seen:
                arrived = seen[name].received - self._interfaces[name].received
                missing = arrived - (count - self._taken[name])
                if missing > _FEW_FRAMES:
                    yield f"{missing} of {arrived} frames at {name} were lost before the program saw them"
