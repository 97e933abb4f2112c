# SPDX-License-Identifier: Apache-2.0
"""Draws README's animated picture: ECMP beside Flowcut at a slow uplink, on the same traffic.

    .venv/bin/python scripts/slow_link.py        # examples/slow_link -> docs/img/slow-link.svg

Both runs are recorded. A packet moves along a link from the departure of its first bit to the arrival of its
last bit: arrivals are recorded, departures follow from length, rate and delay, as in `tailrace view`. Between
its arrival at a switch and its departure it stands in the queue of its port, behind the packets that leave
before it. Only positions between two such events are interpolated. ACKs are not drawn.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tailrace
from tailrace.experiments.plan.plan import plan
from tailrace.hosts.nic.recording import DRAIN, RESUME
from tailrace.sim.network.record import ARRIVED, DATA
from tailrace.spec.atomic import write_output
from tailrace.viewer.data import run_data

PICTURE = Path("docs/img/slow-link.svg")
EXPERIMENT = Path("examples/slow_link/experiment.toml")
SCHEMES = {"ecmp": "ECMP", "flowcut": "Flowcut"}
LANES = 4
"""Spines, and hosts of a leaf."""

STILL_NS = 110_000
"""The moment that readers see who prefer reduced motion."""

NS_PER_S, CLOCK_NS, HOLD_NS, JUMP_NS = 36_000, 10_000, 50_000, 1
"""Virtual time that a second shows, of a step of the clock, for which the end stays, of a step in a queue."""

WIDTH, TOP, PANEL, ROW, SLOT = 820, 60, 186, 32, 9
"""In pixels: the picture, what is above all panels, a scheme's panel, a lane, a packet's place in a queue."""

STAGES = ((12, 48), (118, 218), (312, 356), (438, 486), (552, 588))
"""Left and right edges of senders, leaf 1, spines, leaf 2 and receivers."""

BAR = (610, 756)
"""Left and right edge of the bars of received data."""

STYLE = """
svg{--ink:#1b1f24;--paper:#fff;--box:#eef1f4;--edge:#6e7781;--other:#0072b2;--hot:#d55e00}
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--paper:#0d1117;--box:#21262d;--edge:#8b949e;--other:#56b4e9;--hot:#ff8c3a}}
text{font:13px "DejaVu Sans",Verdana,sans-serif;fill:var(--ink)}
.paper{fill:var(--paper);stroke:var(--edge)}.node{fill:var(--box);stroke:var(--edge)}
.link{fill:var(--edge)}.slow{fill:none;stroke:var(--hot);stroke-width:1.5;stroke-dasharray:4 2}
.other{fill:var(--other)}.hot{fill:var(--hot)}.outlined{fill:var(--hot);stroke:var(--ink)}
.name{font-size:18px;font-weight:bold}.bold{font-weight:bold}.small{font-size:12px}.middle{text-anchor:middle}
@media(prefers-reduced-motion:reduce){g{animation:none!important}}
"""


class Hop(NamedTuple):
    """A packet on a wire: when it came to the node before it; when its first bit left, its last arrived."""

    wire: int
    came_ns: float
    left_ns: float
    arrived_ns: float


class Run:
    """A recorded run, as a page of `tailrace view` has it (viewer/data.py).

    packets: the hops of each data packet, by flow and packet sequence number
    hot: the flow that begins on the slow link; there is one
    """

    def __init__(self, scheme: str) -> None:
        """Runs the scheme."""
        experiment = tailrace.experiment(EXPERIMENT, scheme=scheme)
        result = tailrace.run(experiment)
        self.out_of_order = sum(row.out_of_order for row in result.rows)
        data = run_data(result, plan(experiment, "virtual").job, [])
        start = 8 + int.from_bytes(data[:8], "little")
        self.header: dict[str, Any] = json.loads(data[8:start])
        self.column: dict[str, list[int]] = {}
        for name, (kind, at, count, is_delta) in self.header["columns"].items():
            values = np.frombuffer(data, f"<{kind}", count, start + at).astype(np.int64)
            self.column[name] = (np.cumsum(values) if is_delta else values).tolist()
        self.packets = self._packets()
        slow = {wire for wire, *_ in self.header["slow"]}
        (self.hot,) = {flow for (flow, _), hops in self.packets.items() for hop in hops if hop.wire in slow}
        self.slow_bps, self.rate_bps = (
            min(self.column["wire_rate_bps"]) * factor for factor in (self.header["slow"][0][1], 1)
        )

    def _packets(self) -> dict[tuple[int, int], list[Hop]]:
        packets: dict[tuple[int, int], list[Hop]] = defaultdict(list)
        factors = {wire: factor for wire, factor, *_ in self.header["slow"]}
        for time_ns, what, wire, flow, frame, psn, size in self._rows():
            if (what, frame) == (ARRIVED, DATA):
                rate_bps = self.column["wire_rate_bps"][wire] * factors.get(wire, 1)
                left_ns = time_ns - self.column["wire_delay_ns"][wire] - size * 8e9 / rate_bps
                hops = packets[flow, psn]
                came_ns = hops[-1].arrived_ns if hops else 0
                # recorded times are whole nanoseconds
                hops.append(Hop(wire, came_ns, max(left_ns, came_ns + JUMP_NS), time_ns))
        return packets

    def _rows(self) -> Iterator[tuple[int, str, int, int, str, int, int]]:
        column, header = self.column, self.header
        whats = map(header["whats"].__getitem__, column["what"])
        frames = (header["frames"][number] if number >= 0 else "" for number in column["frame"])
        place, flow, psn, size = (column[name] for name in ("place", "flow", "psn", "bytes"))
        return zip(column["time_ns"], whats, place, flow, frames, psn, size, strict=True)

    def first_ns(self, event: str) -> float | None:
        """When the hot flow first had an event; None: never."""
        return next((at for at, what, _, flow, *_ in self._rows() if (what, flow) == (event, self.hot)), None)

    def lane(self, hop: Hop, stage: int) -> int:
        """The lane of the sender, spine or receiver at an end of a wire."""
        end = "wire_target" if stage % 2 else "wire_source"
        name = self.header["names"][self.column[end][hop.wire]]
        return (int(name.lstrip("spineh")) - 1) % LANES

    def points(self, hops: Sequence[Hop], top: float) -> Iterator[tuple[float, float, float]]:
        """Time, x and y of a packet at each event; at first and at last it is under a host."""
        for stage, hop in enumerate(hops):
            y, right = lane_y(top, self.lane(hop, stage)), STAGES[stage][1]
            times_ns = [hop.came_ns, *(self._leaving_before(hop) if stage else ()), hop.left_ns]
            for number, (since_ns, until_ns) in enumerate(pairwise(times_ns)):
                if until_ns - since_ns > 2 * JUMP_NS:
                    x = right - SLOT * (len(times_ns) - number - 1.5) if stage else sum(STAGES[0]) / 2
                    yield since_ns + JUMP_NS, x, y
                    yield until_ns - JUMP_NS, x, y
            yield hop.left_ns, right, y
            yield hop.arrived_ns, STAGES[stage + 1][0], y
        yield hops[-1].arrived_ns + JUMP_NS, sum(STAGES[-1]) / 2, y

    def _leaving_before(self, hop: Hop) -> list[float]:
        """When the packets left that stood before this one in its queue."""
        departures = (
            each.left_ns for hops in self.packets.values() for each in hops if each.wire == hop.wire
        )
        return sorted(left_ns for left_ns in departures if hop.came_ns < left_ns < hop.left_ns)


class Picture:
    """The parts of an SVG, and its animations, which all last one loop of `end_ns` of virtual time."""

    def __init__(self, end_ns: float) -> None:
        """An empty picture."""
        self.end_ns = end_ns
        self.parts: list[str] = []
        self.rules: list[str] = []

    def animate(self, part: str, steps: Iterable[tuple[float, str]], still: str, timing: str) -> None:
        """Adds a part with a CSS declaration from each time on, or between them; `still`: without motion."""
        name = f"a{len(self.rules)}"
        frames = "".join(f"{100 * at / self.end_ns:.4f}%{{{value}}}" for at, value in steps)
        animation = f"animation:{name} var(--loop) {timing} infinite"
        self.rules.append(f"@keyframes {name}{{{frames}}}.{name}{{{still};{animation}}}")
        self.parts.append(f'<g class="{name}">{part}</g>')

    def switch(self, parts: Sequence[tuple[float, str]]) -> None:
        """Adds parts of which each replaces the one before it at a time; the last stays."""
        for (from_ns, part), (until_ns, _) in pairwise([*parts, (self.end_ns + 1, "")]):
            shown = "visible" if from_ns <= STILL_NS < until_ns else "hidden"
            values = {0.0: "hidden", from_ns: "visible", until_ns: "hidden"}
            steps = [(at, f"visibility:{value}") for at, value in values.items() if at < self.end_ns]
            self.animate(part, steps, f"visibility:{shown}", "step-end")

    def add(self, *parts: str) -> None:
        """Adds parts that do not change."""
        self.parts.extend(parts)

    def svg(self, height: float, title: str, description: str) -> str:
        """The file."""
        loop = f"svg{{--loop:{self.end_ns / NS_PER_S:.2f}s}}"
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img">'
        lines = [head, f"<title>{title}</title><desc>{description}</desc>", "<style>", loop, *self.rules]
        return "\n".join([*lines, STYLE.strip(), "</style>", *self.parts, "</svg>"]) + "\n"


def write(x: float, y: float, text: str, kind: str = "") -> str:
    """A text element."""
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{text}</text>'


def box(edges: tuple[float, float], y: float, height: float, kind: str) -> str:
    """A rectangle."""
    x, width = edges[0], edges[1] - edges[0]
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="2" class="{kind}"/>'


def named(edges: tuple[float, float], y: float, text: str) -> str:
    """A name in the middle between two edges."""
    return write(sum(edges) / 2, y, text, "small middle")


def lane_y(top: float, lane: int) -> float:
    """The middle of a lane of a panel."""
    return top + 58 + ROW * lane


def us(time_ns: float) -> str:
    """A time as text."""
    return f"{time_ns / 1000:.0f} µs"


def panel(picture: Picture, run: Run, name: str, top: float) -> None:
    """Draws a run: its network, then packets, then what covers them."""
    lanes = [lane_y(top, lane) for lane in range(LANES)]
    senders, leaf1, spines, leaf2, receivers = STAGES
    slow = (leaf1[1], spines[0])
    for (_, left), (right, _) in pairwise(STAGES):
        picture.add(*(box((left, right), y - 0.75, 1.5, "link") for y in lanes))
    picture.add(box(slow, lanes[0] - 7, 14, "slow"))
    picture.add(named(slow, lanes[0] - 13, f"slow: {run.slow_bps / 1e9:g} Gb/s"))
    for edges, text in ((leaf1, "leaf 1"), (spines, "spines"), (leaf2, "leaf 2")):
        picture.add(named(edges, lanes[0] - 20, text))
    picture.add(*(box(leaf, lanes[0] - 15, ROW * (LANES - 1) + 30, "node") for leaf in (leaf1, leaf2)))
    picture.add(*(box(spines, y - 11, 22, "node") for y in lanes))
    picture.add(*(named(spines, y + 4, str(lane)) for lane, y in enumerate(lanes, 1)))
    packets(picture, run, top)
    for edges, first in ((senders, 1), (receivers, 1 + LANES)):
        picture.add(*(box(edges, y - 11, 22, "node") for y in lanes))
        picture.add(*(named(edges, y + 4, f"h{host}") for host, y in enumerate(lanes, first)))
    picture.add(write(12, top + 18, name, "name"), write(BAR[0], lanes[0] - 20, "data received", "small"))
    for flow in range(len(run.column["flow_end_ns"])):
        received(picture, run, flow, top)
    picture.switch([(at, write(118, top + 18, text, "bold")) for at, text in story(run)])


def packets(picture: Picture, run: Run, top: float) -> None:
    """Draws a run's data packets."""
    for (flow, _), hops in run.packets.items():
        points = list(run.points(hops, top))
        times, xs, ys = zip(*points, strict=True)
        places = [f"transform:translate({x:.1f}px,{y:g}px)" for x, y in zip(xs, ys, strict=True)]
        steps = [(0, places[0]), *zip(times, places, strict=True), (picture.end_ns, places[-1])]
        x, y = (np.interp(STILL_NS, times, values) for values in (xs, ys))
        circle = '<circle r="3.5" class="other"/>'
        shape = box((-3.5, 3.5), -6.5, 13, "outlined") if flow == run.hot else circle
        picture.animate(shape, steps, f"transform:translate({x:.1f}px,{y:g}px)", "linear")


def received(picture: Picture, run: Run, flow: int, top: float) -> None:
    """Draws how much of a flow's data has arrived, and when it ended."""
    last_hops = [hops[-1] for (of, _), hops in run.packets.items() if of == flow]
    times = sorted(hop.arrived_ns for hop in last_hops)
    y = lane_y(top, run.lane(last_hops[0], len(STAGES) - 2))
    shares = [(at, number / len(times)) for number, at in enumerate([0.0, *times])]
    steps = [(at, f"transform:scaleX({share:.3f})") for at, share in shares]
    still = [step for at, step in steps if at <= STILL_NS][-1]
    kind, weight = ("hot", "bold") if flow == run.hot else ("other", "")
    picture.add(box(BAR, y - 7, 14, "node"), f'<g transform="translate({BAR[0]} {y - 7:g})">')
    picture.animate(box((0, BAR[1] - BAR[0]), 0, 14, kind), steps, still, "step-end")
    picture.add("</g>")
    end_ns = run.column["flow_end_ns"][flow]
    picture.switch([(end_ns, write(BAR[1] + 6, y + 4, us(end_ns), weight))])


def story(run: Run) -> Iterator[tuple[float, str]]:
    """What happens to the hot flow, and from when on."""
    src, dst = (run.header["names"][run.column[f"flow_{end}"][run.hot]] for end in ("src", "dst"))
    end_ns = run.column["flow_end_ns"][run.hot]
    drain_ns, resume_ns = run.first_ns(DRAIN), run.first_ns(RESUME)
    flow = f"Flow {src} → {dst}"
    if drain_ns is None or resume_ns is None:
        yield 0, f"{flow} stays on the slow link."
    else:
        yield 0, f"{flow} begins on the slow link, too."
        yield drain_ns, f"{flow} drains: {src} waits until its packets have left the old path."
        yield resume_ns, f"{flow} takes another path; nothing can be overtaken."
    yield end_ns, f"{flow} ends after {us(end_ns)}. Packets out of order: {run.out_of_order}."


def draw(runs: Mapping[str, Run]) -> str:
    """The picture of recorded runs by name, from top to bottom."""
    last_ns = max(max(run.column["flow_end_ns"]) for run in runs.values())
    picture = Picture(last_ns + HOLD_NS)
    height = TOP + PANEL * len(runs) - 4
    picture.add(box((0.5, WIDTH - 0.5), 0.5, height - 1, "paper"))
    first = next(iter(runs.values()))
    slow, rate = (f"{bps / 1e9:g} Gb/s" for bps in (first.slow_bps, first.rate_bps))
    rates = f"Leaf 1 to spine 1 has {slow}, all other links {rate}."
    picture.add(write(12, 22, f"Same four flows, same first paths. {rates}"))
    picture.add(box((15, 22), 33, 13, "outlined"), '<circle cx="268" cy="40" r="3.5" class="other"/>')
    picture.add(write(28, 44, "packet of the flow on the slow link", "small"))
    picture.add(write(277, 44, "packet of another flow", "small"))
    clock = [(at, write(756, 44, us(at), "bold")) for at in range(0, last_ns + 1, CLOCK_NS)]
    picture.switch(clock)
    for number, (name, run) in enumerate(runs.items()):
        panel(picture, run, name, TOP + PANEL * number)
    hot_ends = {name: us(run.column["flow_end_ns"][run.hot]) for name, run in runs.items()}
    ends = ", ".join(f"after {end} under {name}" for name, end in hot_ends.items())
    description = (
        f"A recorded run of each scheme, slowed down. The flow on the slow link ends {ends}. "
        "Under ECMP it stays there. Under Flowcut it drains, then takes another path."
    )
    return picture.svg(height, "ECMP beside Flowcut at a slow link", description)


if __name__ == "__main__":
    write_output(PICTURE, draw({name: Run(scheme) for scheme, name in SCHEMES.items()}))
