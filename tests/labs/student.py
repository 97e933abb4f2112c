# SPDX-License-Identifier: Apache-2.0
"""A student who follows a sheet: runs its commands, reads what they print, and writes answers."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import runpy
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tailrace.cli.main import main
from tests import forked

ROOT = Path(__file__).resolve().parents[2]


class Flow(NamedTuple):
    """A line of look.py."""

    id: int
    src: str
    dst: str
    fct_us: float
    slowdown: float
    late: int
    changes: int
    drains: int
    spines: list[str]

    @property
    def leaf(self) -> str:
        return "leaf1" if self.src in ("h1", "h2", "h3", "h4") else "leaf2"


class Student:
    """Works in the folder that `tailrace lab N --start` wrote."""

    def __init__(self, number: int, folder: Path, name: str = "Ada") -> None:
        self.number, self.folder = number, folder / f"lab{number}"
        assert main(["lab", str(number), "--start", str(self.folder), "--seed", name]) == 0

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        before = Path.cwd()
        os.chdir(self.folder)
        try:
            yield
        finally:
            os.chdir(before)

    def command(self, line: str) -> tuple[int, str]:
        """The exit status and standard output of a command line in the folder."""
        arguments = shlex.split(line)
        if arguments[0] == "tailrace" and self.number == 6:  # a plug-in stays in its process
            done = forked.command(arguments[1:], self.folder)
            return done.returncode, done.stdout
        out = io.StringIO()
        with self.inside(), contextlib.redirect_stdout(out):
            if arguments[0] == "tailrace":
                return main(arguments[1:]), out.getvalue()
            assert arguments[0] == "python"
            before, sys.argv = sys.argv, arguments[1:]
            pipe = signal.getsignal(signal.SIGPIPE)
            try:
                runpy.run_path(arguments[1])
            finally:
                sys.argv = before
                signal.signal(signal.SIGPIPE, pipe)
        return 0, out.getvalue()

    def flows(self, options: str = "", run: str = "run", *, again: bool = True) -> dict[int, Flow]:
        """What look.py says of the flows of a run with these options."""
        if again:
            assert self.command(f"tailrace run lab.toml {options} --out {run}")[0] == 0
        lines = [line.split() for line in self.command(f"python look.py {run}")[1].splitlines()[2:]]
        made = (
            Flow(
                int(cells[0]),
                cells[1],
                cells[2],
                float(cells[3]),
                float(cells[4]),
                int(cells[5]),
                int(cells[6]),
                int(cells[7]),
                cells[8:],
            )
            for cells in lines
        )
        return {flow.id: flow for flow in made}

    def events(self, flow: int) -> list[tuple[float, str, str]]:
        """What look.py says of a flow: the time in µs, what happened, and where."""
        lines = self.command(f"python look.py run {flow}")[1].splitlines()
        matches = (re.match(r" *([0-9.]+) us  (.{12}) (\S+)", line) for line in lines)
        return [(float(match[1]), match[2].strip(), match[3]) for match in matches if match]

    def check(self, answers: Mapping[str, object]) -> tuple[int, dict[str, tuple[str, str]]]:
        """Writes answers between the quotes; the exit status of the check, and each verdict with its reason."""
        path = self.folder / "answers.toml"
        text = path.read_text("utf-8")
        for key, answer in answers.items():
            text, count = re.subn(rf'^{key} = ".*"$', f'{key} = "{answer}"', text, flags=re.MULTILINE)
            assert count == 1, key
        path.write_text(text, "utf-8")
        status, out = self.command(f"tailrace lab {self.number} --check answers.toml")
        verdicts = re.findall(r"^(\w+) +(right|wrong|open)  (.*?)(?=^\w)", out, re.MULTILINE | re.DOTALL)
        return status, {key: (verdict, " ".join(why.split())) for key, verdict, why in verdicts}


def late(flows: dict[int, Flow]) -> int:
    return sum(flow.late for flow in flows.values())


def uplinks(flows: dict[int, Flow]) -> list[str]:
    return [f"{flow.leaf}-{spine}" for flow in flows.values() for spine in flow.spines]


def collision(student: Student) -> dict[str, object]:
    flows = student.flows()
    first, second = next(
        (flow, other)
        for flow in flows.values()
        for other in flows.values()
        if flow.id < other.id and uplinks({1: flow}) == uplinks({1: other})
    )
    path = student.folder / "flows.csv"
    rows = list(csv.reader(path.read_text("utf-8").splitlines()))
    for port in range(2000, 2100):
        rows[first.id][4] = str(port)
        path.write_text("".join(",".join(row) + "\n" for row in rows), "utf-8")
        moved = student.flows(run="moved")
        if uplinks(moved).count(*uplinks({1: moved[first.id]})) == 1:
            break
    return {
        "paths": 4,
        "pair": f"{first.id} and {second.id}",
        "link": f"{first.leaf}-{first.spines[0]}",
        "idle": 8 - len(set(uplinks(flows))),
        "slowdown": first.slowdown,
        "sport": port,
        "gain": f"{first.fct_us / moved[first.id].fct_us:.2f}x",
    }


def bracket(student: Student, option: str, low_us: int, high_us: int) -> tuple[int, int]:
    """A time with which packets are out of order, and one with which none is, close together."""
    while high_us > 1.4 * low_us:
        middle = (low_us + high_us) // 2
        if late(student.flows(f"--scheme {option}={middle}us", "middle")):
            low_us = middle
        else:
            high_us = middle
    return low_us, high_us


def flowlets(student: Student) -> dict[str, object]:
    first = student.flows()
    reorders, orders = bracket(student, "letflow:gap", 20, 4000)
    long = student.flows(f"--scheme letflow:gap={orders}us", "gap")
    size = re.findall(r"data packet \d+, (\d+) bytes", student.command("python look.py run 1")[1])[-1]
    return {
        "frame_us": int(size) * 8 / 1000,
        "late": late(first),
        "reorders": f"{reorders}us",
        "orders": f"{orders / 1000}ms",
        "price": max(flow.fct_us for flow in long.values()) / max(flow.fct_us for flow in first.values()),
    }


def drain(student: Student) -> dict[str, object]:
    flows = student.flows()
    events = {flow: student.events(flow) for flow in flows if flows[flow].drains}
    at_us, flow = min((time, flow) for flow in events for time, what, _ in events[flow] if what == "drain")
    end_us = next(time for time, what, _ in events[flow] if what == "resume" and time > at_us)
    spines = [(time, node) for time, what, node in events[flow] if node.startswith("spine")]
    before = [node for time, node in spines if time < end_us][-1]
    return {
        "flow": flow,
        "at_us": f"{at_us} us",
        "lasts_us": f"{(end_us - at_us) / 1000} ms",
        "before": before,
        "after": next(node for time, node in spines if time > end_us),
        "longest": longest_queue(student, flows[flow], before),
        "drains": sum(each.drains for each in flows.values()),
        "order": late(flows),
    }


def longest_queue(student: Student, flow: Flow, spine: str) -> str:
    """What `tailrace queues` shows first of the ports on a path, while the run waits for Enter."""
    import json
    import subprocess

    tailrace = [sys.executable, "-m", "tailrace.cli.main"]
    line = ["run", "lab.toml", "--out", "stopped", "--stop-at", "drain"]
    with subprocess.Popen(
        [*tailrace, *line],
        cwd=student.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        assert run.stdin is not None and run.stderr is not None
        while "press Enter" not in (text := run.stderr.readline()):
            assert text, "the run did not stop"
        shown = student.command("tailrace queues --sort-by=-egress_queue_bytes --json")[1]
        run.communicate("\n")
    other = {"leaf1": "leaf2", "leaf2": "leaf1"}[flow.leaf]
    path = (f"{flow.leaf}-{spine}", f"{spine}-{other}", f"{other}-{flow.dst}")
    ports = (f"{row['switch']}-{row['port']['peer']}" for row in json.loads(shown))
    return next(port for port in ports if port in path)


def slow_link(student: Student) -> dict[str, object]:
    status, _ = student.command("tailrace compare lab.toml --out both")
    assert status == 0
    lines = (student.folder / "both" / "table.md").read_text("utf-8").splitlines()
    head, *rows = (
        [cell.strip(" *") for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")
    )
    table: dict[tuple[str, str], dict[str, str]] = {}
    case = ""
    for cells in rows[1:]:
        case = cells[0] or case
        table[case, cells[1]] = dict(zip(head, cells, strict=True))
    ratio = next(name for name in head if name.startswith("mean /"))
    order = next(name for name in head if name.startswith("packets out of order"))
    fct = next(name for name in head if name.startswith("mean FCT"))
    seed = min(path.name for path in (student.folder / "both/link-slow/ecmp").iterdir())
    flows = student.flows(run=f"both/link-slow/ecmp/{seed}", again=False)
    numbers = [
        float(number.replace(",", ""))
        for number in re.findall(
            r"[0-9][0-9.,]*[0-9]", table["link-slow", "flowcut"][ratio].replace("..", " ")
        )
    ]
    low, high = map(float, re.findall(r"\((.*)\.\.(.*)\)", table["clean", "letflow"][ratio])[0])
    mean = {
        case: float(table[case, "ecmp"][fct].split()[0].replace(",", "")) for case in ("clean", "link-slow")
    }
    schemes = ("ecmp", "letflow", "flowcut")
    worst = max(flows.values(), key=lambda flow: flow.slowdown)
    return {
        "ordered": ", ".join(
            name for name in schemes if all(table[case, name][order].split()[0] == "0" for case in mean)
        ),
        "cost": mean["link-slow"] / mean["clean"],
        "worst": worst.id,
        "spine": worst.spines[0],
        "low": numbers[1],
        "high": f"{numbers[2]} x",
        "differs": "No" if low <= 1 <= high else "Yes",
    }


def age(student: Student) -> dict[str, object]:
    reorders, orders = bracket(student, "flowcut:age", 20, 4000)
    flows = student.flows(f"--scheme flowcut:age={reorders}us", "age")
    rtt_us = 4 * (1082 * 8 / 10_000 + 1) + 4 * (66 * 8 / 10_000 + 1)
    return {
        "rtt_us": rtt_us,
        "reorders": f"{reorders}us",
        "orders": f"{orders}us",
        "ratio": orders / rtt_us,
        "late": late(flows),
    }


SOLUTION = """\
        if ev != self.port:
            return
        self.acks = getattr(self, "acks", 0) + 1
        if self.acks == 1:
            self.since_ns = now_ns
        if self.acks == 33:
            self.acks = 0
            if now_ns - self.since_ns > 120_000:
                self.port = self.rng.choice(self.ports)
"""


def balancer(student: Student) -> dict[str, object]:
    """Without p4c, the compiled program of the scheme spray is the student's."""
    mine = student.folder / "mine.py"
    text, marker = mine.read_text("utf-8"), "        good = feedback"
    mine.write_text(text[: text.index(marker)] + SOLUTION, "utf-8")
    build = student.folder / "p4" / "build"
    build.mkdir()
    for ending in (".json", ".p4info.txtpb"):
        shutil.copyfile(ROOT / "p4src" / "build" / f"spray{ending}", build / f"mine{ending}")
    plugins = "--plugin mine.py --plugin untouched.py"
    line = f"tailrace compare lab.toml {plugins} --scheme mine,ecmp,untouched --out both"
    assert student.command(line)[0] == 0
    line = "tailrace run lab.toml --plugin p4 --scheme mine-p4 --out minep4"
    assert student.command(line)[0] == 0
    seeds = sorted(path.name for path in (student.folder / "both/link-slow/mine").iterdir())
    runs = {
        name: [student.flows(run=f"both/link-slow/{name}/{seed}", again=False) for seed in seeds]
        for name in ("mine", "ecmp", "untouched")
    }
    fct_us = {name: sum(flow.fct_us for run in runs[name] for flow in run.values()) for name in runs}
    nics = runs["mine"][0]
    p4 = student.flows(run=f"minep4/link-slow/mine-p4/{seeds[0]}", again=False)
    return {
        "scheme": "mine",
        "changes": sum(flow.changes for flow in nics.values()),
        "gain": min(fct_us["ecmp"], fct_us["untouched"]) / fct_us["mine"],
        "late": late(nics),
        "p4_scheme": "mine-p4",
        "p4_uplinks": len(set(uplinks(p4))),
        "p4_late": late(p4),
    }


SOLVED: dict[int, Callable[[Student], dict[str, object]]] = {
    1: collision,
    2: flowlets,
    3: drain,
    4: slow_link,
    5: age,
    6: balancer,
}
