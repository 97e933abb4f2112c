# SPDX-License-Identifier: Apache-2.0
"""What happens to a network, drawn from a seed: one act after another, several under way at a time."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from fabric_process import Process

from soak.realtime import abuse
from soak.realtime.place import CONTROLLERS, KILLED, SURVIVORS, Place

WEIGHTS = {
    "switch": 4,
    "controller": 3,
    "hosts": 2,
    "link": 6,
    "stop": 1,
    **dict.fromkeys(abuse.KINDS, 2),
}
BETWEEN_S = 1.5
"""From one act to the next, on average."""

AT_ONCE = 3
"""Bad clients at a time."""


@dataclass(slots=True)
class _Later:
    """Something that is due at a time; asked for by name, so that nothing is done twice."""

    at_s: float
    what: str
    act: Callable[[], None]


@dataclass
class Chaos:
    """Acts from a seed. `turn` does what is due, `calm` undoes everything. `acts` counts, `log` tells."""

    place: Place
    seed: int
    log: Callable[[str, object], None]
    acts: Counter[str] = field(default_factory=Counter)
    _later: list[_Later] = field(default_factory=list)
    _next_s: float = 0.0
    _number: int = 0

    def __post_init__(self) -> None:
        self._rng = random.Random(f"{self.seed}/chaos")
        self._clients: list[Process] = []

    def turn(self) -> None:
        """Does what is due, and begins the next act when it is time."""
        now_s = time.monotonic()
        for one in [one for one in self._later if one.at_s <= now_s]:
            self._later.remove(one)
            self._do(one)
        for client in [client for client in self._clients if client.ended()]:
            self._clients.remove(client)
            client.end()
        if now_s >= self._next_s:
            self._next_s = now_s + self._rng.expovariate(1 / BETWEEN_S)
            self._begin(self._rng.choices(list(WEIGHTS), list(WEIGHTS.values()))[0])

    def calm(self) -> None:
        """Ends bad clients, brings up what is down, and lets what was stopped go on."""
        for client in self._clients:
            client.ask_to_end()
        for client in self._clients:
            client.end()
        self._clients.clear()
        later, self._later = self._later, []
        for one in later:
            self._do(one)

    def _do(self, one: _Later) -> None:
        self.log(one.what, "over")
        one.act()

    def _begin(self, kind: str) -> None:
        rng = self._rng
        for_s = rng.uniform(0.1, 4.0)
        if kind in abuse.KINDS:
            self._abuse(kind, rng.choice((*SURVIVORS, *SURVIVORS, *KILLED)), rng.uniform(1, 8))
        elif kind == "switch":
            self._kill(kind, rng.choice(KILLED), for_s)
        elif kind == "controller":
            self._kill(kind, CONTROLLERS[1], for_s)
        elif kind == "hosts":
            self._kill(kind, rng.choice(list(self.place.pairs())), for_s)
        elif kind == "link":
            links = [link for link in self.place.plan.links if link.a.node in self.place.plans]
            link = rng.choice(links)
            self._until(kind, link.name, for_s, lambda: self.place.links.set_state(link, "up"))
            self.place.links.set_state(link, "down")
        elif kind == "stop":
            name = rng.choice(CONTROLLERS)
            process = self.place.processes[name]
            if not self.pending(name) and not process.ended():
                self._until(kind, name, for_s, lambda: _signal(process, signal.SIGCONT))
                _signal(process, signal.SIGSTOP)

    def pending(self, subject: str) -> bool:
        """Whether something about a process or link is to be undone."""
        return any(one.what.endswith(f" {subject}") for one in self._later)

    def _until(self, kind: str, subject: str, for_s: float, undo: Callable[[], None]) -> None:
        """Notes what is to be undone; of the same subject only once."""
        what = f"{kind} {subject}"
        if not self.pending(subject):
            self.acts[kind] += 1
            self.log(what, f"for {for_s:.2f} s")
            self._later.append(_Later(time.monotonic() + for_s, what, undo))

    def _kill(self, kind: str, name: str, for_s: float) -> None:
        if self.pending(name):
            return
        # hosts are started by whoever keeps them sending
        self._until(kind, name, for_s, lambda: None if kind == "hosts" else self.place.start(name))
        self.place.kill(name)

    def _abuse(self, kind: str, switch: str, for_s: float) -> None:
        if len(self._clients) >= AT_ONCE:
            return
        self._number += 1
        self.acts[kind] += 1
        self.log(f"{kind} {switch}", f"for {for_s:.2f} s")
        plan = self.place.plans[switch]
        words = [kind, plan.address, str(plan.device_id), f"{self.seed}/{self._number}", f"{for_s:.2f}"]
        command = [sys.executable, "-m", "soak.realtime.abuse", *words]
        log = self.place.logs / f"abuse-{kind}.log"
        self._clients.append(Process(f"{kind} {switch}", command, log))


def _signal(process: Process, number: int) -> None:
    if not process.ended():
        os.killpg(process.pid, number)
