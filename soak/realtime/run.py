# SPDX-License-Identifier: Apache-2.0
"""A run inside the sandbox: rounds of chaos and calm, and what was seen; or restarts in a quiet network."""

from __future__ import annotations

import collections
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from fabric_net import FabricNet
from fabric_process import last_line

from soak.realtime import judge
from soak.realtime.chaos import Chaos
from soak.realtime.measure import Sample, descriptors, percentiles, sample
from soak.realtime.place import CONTROLLERS, KILLED, SURVIVORS, Place
from soak.realtime.probe import Calls, Latency, Packets

RESULT = "chaos.json"
LOG = "chaos.jsonl"
ROUND_S = 60.0
ROUNDS = 8
"""At least so many in a run, which are shorter where it is."""

CHAOS = 0.7
"""Share of a round; then there is calm."""

REST_S = 2.0
"""Of calm, before memory is looked at."""

RECONCILED_S = 120.0
"""Later than that a network has not come back. Far more than it takes: machines may be busy."""

SAMPLE_S = 5.0
TURN_S = 0.02
MEASURED = (*SURVIVORS, CONTROLLERS[0])


class Run:
    """What both kinds of run have: a place, its probes, a log. Use `up`, and `down` in any case."""

    def __init__(self, out: Path, run_dir: Path, seed: int) -> None:
        self.out, self.seed = out, seed
        self._log = (out / LOG).open("w", buffering=1, encoding="utf-8")
        self._began_s = time.monotonic()
        self.place = Place(out, run_dir, seed, self.log)
        self.problems: list[str] = []
        self._packets: Packets | None = None
        self._calls: list[Calls] = []

    def up(self) -> None:
        """Brings up the network, and waits until it is reconciled. Raises FabricError."""
        net: FabricNet = self.place.up()
        self._began_s = time.monotonic()
        self._packets = Packets(self.place, net, self._began_s)
        self.come_back("start", self._began_s)

    def down(self) -> None:
        """Ends everything."""
        if self._packets is not None:
            self._packets.stop()
        for calls in self._calls:
            calls.stop()
        self.place.down()
        self._log.close()

    def log(self, what: str, said: object) -> None:
        """A line of what happens, with its time in seconds."""
        line = {"at_s": round(time.monotonic() - self._began_s, 3), "what": what, "said": said}
        self._log.write(json.dumps(line) + "\n")

    def come_back(self, what: str, from_s: float, turn: Callable[[], None] = lambda: None) -> float:
        """Waits until controllers see everything in order, switches hold what they should and hosts reach
        each other; how long that took since a moment, seconds. A problem when it does not.
        """
        packets = self._packets
        assert packets is not None
        why, deadline_s = "", time.monotonic() + RECONCILED_S
        while time.monotonic() < deadline_s:
            why = self.place.reconciled()
            if not why:
                settled_s = max(from_s, self.place.settled_s())
                why = "" if packets.answered_since(settled_s) else "hosts do not reach each other"
                if not why:
                    done_s = max(settled_s, *packets.last_far_s.values())
                    why = "; ".join(self.place.different())
                    if not why and not self.place.reconciled():
                        self.log(what, f"reconciled after {done_s - from_s:.3f} s")
                        return done_s - from_s
            turn()
            time.sleep(TURN_S)
        self.problems.append(f"{what}: not reconciled after {RECONCILED_S:.0f} s: {why}")
        self.log(what, self.problems[-1])
        return RECONCILED_S

    def write(self, **found: Any) -> dict[str, Any]:
        """The result, which is also written."""
        result = {"seed": self.seed, **found, "problems": self.problems}
        (self.out / RESULT).write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
        return result


class Soak(Run):
    """Rounds of chaos, each with calm behind it."""

    def soak(self, minutes: float) -> dict[str, Any]:
        """Runs so long; the result."""
        place, packets = self.place, self._packets
        assert packets is not None
        chaos = Chaos(place, self.seed, self.log)
        samples: dict[str, list[Sample]] = {name: [] for name in MEASURED}
        self._calls = [Calls(place, name, self._began_s) for name in SURVIVORS]
        pids = {name: place.processes[name].pid for name in MEASURED}
        began_s, round_s = time.monotonic(), min(ROUND_S, minutes * 60 / ROUNDS)
        end_s, next_sample_s = began_s + minutes * 60, began_s
        recoveries: list[float] = []

        def look(*, calm: bool) -> None:
            for name in MEASURED:
                samples[name].append(sample(pids[name], time.monotonic() - self._began_s, calm=calm))

        def turn() -> None:
            nonlocal next_sample_s
            place.keep_sending(chaos.pending)
            for name in MEASURED:
                place.processes[name].check()
            if time.monotonic() >= next_sample_s:
                next_sample_s += SAMPLE_S
                look(calm=False)

        while time.monotonic() < end_s and not self.problems:
            stop_s = min(end_s, time.monotonic() + CHAOS * round_s)
            while time.monotonic() < stop_s:
                chaos.turn()
                turn()
                time.sleep(TURN_S)
            self.log("calm", "")
            chaos.calm()
            recoveries.append(self.come_back("calm", time.monotonic(), turn))
            rest_s = time.monotonic() + min(REST_S, (1 - CHAOS) * round_s)
            while time.monotonic() < rest_s:
                turn()
                time.sleep(TURN_S)
            look(calm=True)
        self.problems += [*judge.problems(samples), *self._said_in_logs()]
        return self._result(minutes, chaos, samples, recoveries)

    def _said_in_logs(self) -> list[str]:
        """Lines of logs that no chaos excuses."""
        found = []
        for name in MEASURED:
            text = (self.place.logs / f"{name}.log").read_text(errors="replace")
            if "internal error" in text or "Traceback" in text:
                found.append(f"{name}: its log has an error: {last_line(self.place.logs / f'{name}.log')}")
        return found

    def _result(
        self, minutes: float, chaos: Chaos, samples: dict[str, list[Sample]], recoveries: list[float]
    ) -> dict[str, Any]:
        packets = self._packets
        assert packets is not None
        failed: collections.Counter[str] = collections.Counter()
        for calls in self._calls:
            failed.update(calls.failed)
        series: dict[str, list[Latency]] = {
            "read": [one for calls in self._calls for one in calls.reads],
            "write": [one for calls in self._calls for one in calls.writes],
            "packets of one switch": list(packets.near),
            "packets across": list(packets.far),
        }
        return self.write(
            minutes=minutes,
            acts=dict(chaos.acts),
            growth={name: judge.growth(seen) for name, seen in samples.items()},
            latency_s={name: percentiles([took for _, took in found]) for name, found in series.items()},
            lost={
                kind: self._packets_lost(packets.sent[kind], len(found))
                for kind, found in (("near", packets.near), ("far", packets.far))
            },
            failed_calls=dict(failed),
            flows_done=self.place.flows_done,
            recovered_s=percentiles(recoveries),
            descriptors={name: descriptors(self.place.processes[name].pid) for name in MEASURED},
            samples=samples,
            latencies=series,
        )

    @staticmethod
    def _packets_lost(sent: int, came: int) -> dict[str, float]:
        return {"sent": sent, "lost": sent - came, "share": round(1 - came / max(1, sent), 4)}


class Restarts(Run):
    """Kills one switch or the controller after the other, and starts it again at once."""

    def restarts(self, count: int) -> dict[str, Any]:
        """Measures from each start to a network that is reconciled; the result."""
        self.place.kill(CONTROLLERS[1])
        rng = random.Random(f"{self.seed}/restarts")
        took: dict[str, list[float]] = {"switch": [], "controller": []}
        for number in range(2 * count):
            if self.problems:
                break
            kind = list(took)[number % 2]
            name = CONTROLLERS[0] if kind == "controller" else rng.choice(KILLED)
            end_s = time.monotonic() + rng.uniform(1, 2)
            while time.monotonic() < end_s:
                self.place.keep_sending()
                time.sleep(TURN_S)
            at_s = self.place.kill(name)
            self.place.start(name)
            took[kind].append(self.come_back(f"{kind} {name}", at_s, self.place.keep_sending))
        return self.write(restart_s={kind: percentiles(found) for kind, found in took.items()}, each=took)
