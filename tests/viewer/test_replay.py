# SPDX-License-Identifier: Apache-2.0
"""What a page of `tailrace view` says at a time is what the run's files say, for runs and times that a seed draws."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

import tailrace
from tailrace.experiments.plan.known import topology_of
from tailrace.tables.arrow import values_of
from tests.long import ALL
from tests.viewer.browser import CHROMIUM, Tab, browser

SEED = random.SystemRandom().randrange(1 << 32) if ALL else 56
RUNS, TIMES = 5, 10
FAT_TREE = "fat-tree:k=4,rate=25Gbps"
SCHEMES = (
    {"scheme": "flowcut:variant=nic", "fault": "link-slow:link=edge1_1-agg1_1,factor=0.1"},
    {"scheme": "flowcut:variant=full", "fault": "link-slow:link=edge1_1-agg1_1,factor=0.1"},
    {"scheme": "rlb:variant=presto", "workload": "incast:size=96KiB,degree=12", "transport": "dcqcn"},
    {"scheme": "spritz", "workload": "incast:size=64KiB,degree=12"},
    {"scheme": "spritz", "topology": "dragonfly:p=2,a=3,h=1", "workload": "incast:size=64KiB,degree=8"},
    {"scheme": "ecmp:queue=16KiB", "workload": "incast:size=64KiB,degree=8", "transport": "sr"},
    {"scheme": "letflow", "topology": "leaf-spine:leaves=3,spines=2,hosts=4", "fault": "drop:rate=0.02"},
)
Row = dict[str, Any]


def rows_of(table: Any) -> list[Row]:
    columns = values_of(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


class Files:
    """What the files of a run say, read in another way than the page's scripts read them."""

    def __init__(self, folder: Path) -> None:
        self.result = tailrace.open_result(folder)
        self.record = rows_of(self.result.timelines.record)
        queues = self.result.timelines.queues
        self.samples = [] if queues is None else rows_of(queues)
        self.times = sorted({row["time_ns"] for row in self.samples})
        self.network = topology_of(self.result.summary.topology)
        self.hosts = {host.name: host for host in self.network.hosts}
        self.end_ns = int(self.result.summary.virtual_ns or 0)
        self.packets = "--record packets" in self.result.summary.option_string

    def target(self, row: Row) -> str:
        """The node to which a frame has come."""
        node, port = row["node"], row["port"]
        return self.hosts[node].switch if node in self.hosts else self.network.ports_of(node)[port].name

    def name(self, node: str, port: int) -> str:
        to = self.target({"node": node, "port": port})
        return f"{node} → {to}" if node in self.hosts else f"{node}:{port} → {to}"

    def flows(self, time_ns: float) -> dict[str, int]:
        last = {
            row["flow"]: row["what"]
            for row in self.record
            if row["what"] in ("drain", "resume") and row["time_ns"] <= time_ns
        }
        states = Counter(
            "waiting" if flow.start_ns > time_ns
            else "finished" if flow.end_ns is not None and flow.end_ns <= time_ns
            else "draining" if last.get(flow.id) == "drain"
            else "active"
            for flow in self.result.rows
        )  # fmt: skip
        return {state: states[state] for state in ("waiting", "active", "draining", "finished")}

    def trims(self, past: list[Row]) -> int:
        """Trimmed packets: each one's frames on consecutive links count as one."""
        here: Counter[tuple[int, int, str]] = Counter()
        trims = 0
        for row in past:
            if row["what"] == "arrived" and row["frame"] == "trimmed":
                key = row["flow"], row["psn"], row["node"]
                trims += here[key] == 0
                here[key] = max(0, here[key] - 1)
                here[row["flow"], row["psn"], self.target(row)] += 1
        return trims

    def describe(self, time_ns: float) -> dict[str, Any]:
        past = [row for row in self.record if row["time_ns"] <= time_ns]
        whats: Counter[str] = Counter()
        for row in past:
            whats[row["what"]] += row["count"]
        frames = Counter((row["what"], row["frame"]) for row in past)
        data = ("data", "retransmission")
        packets = (*data, "trimmed")
        other = Counter(row["what"] for row in past if row["frame"] not in packets)
        pfc = {}
        for row in past:
            if row["what"] == "arrived" and row["frame"] in ("xoff", "xon"):
                pfc[row["node"], row["port"]] = row["frame"]
        said = {
            "flows": self.flows(time_ns),
            "counts": {
                **{kind: whats[kind] for kind in ("path change", "drain", "resume", "timeout")},
                "trim": self.trims(past),
                "drop": sum(frames["dropped", each] for each in packets),
                "lost": whats["failed"],
                "recirculation": sum(frames["recirculated", each] for each in packets),
                "other drop": other["dropped"],
                "other recirculation": other["recirculated"],
                "pause": frames["arrived", "xoff"],
                "unpause": frames["arrived", "xon"],
            },
            "lost_data": sum(frames[what, each] for what in ("dropped", "failed") for each in data),
            "delivered": sum(
                row["what"] == "arrived" and row["frame"] in data and self.target(row) in self.hosts
                for row in past
            ) if self.packets else None,
            "xoff": sum(frame == "xoff" for frame in pfc.values()),
        }  # fmt: skip
        return said | self.sampled(time_ns)

    def sampled(self, time_ns: float) -> dict[str, Any]:
        if not self.samples:
            return {"bin": None, "paused": None, "loaded": [], "queues": []}
        # the first sample may be at the start of the run
        number = min(max(bisect_left(self.times, time_ns), self.times[0] == 0), len(self.times) - 1)
        end = self.times[number]
        start = self.times[number - 1] if number else 0
        now = [row for row in self.samples if row["time_ns"] == end]
        rates = {
            (row["switch"], row["port"]): self.network.ports_of(row["switch"])[row["port"]].rate_bps
            for row in now
        }
        loads = [8e9 * row["tx_bytes"] / rates[row["switch"], row["port"]] / (end - start) for row in now]
        return {
            "bin": {"from_ns": start, "to_ns": end},
            "paused": sum(row["paused"] for row in now),
            "loaded": sorted(filter(None, loads), reverse=True)[:3],
            "queues": sorted(filter(None, (row["queue_bytes"] for row in now)), reverse=True)[:3],
            "by_name": {
                self.name(row["switch"], row["port"]): (load, row["queue_bytes"])
                for row, load in zip(now, loads, strict=True)
            },
        }


def compare(said: dict[str, Any], expected: dict[str, Any]) -> None:
    by_name = expected.pop("by_name", {})
    values = [each["utilisation"] for each in said["loaded"]], [each["bytes"] for each in said["queues"]]
    assert values[0] == pytest.approx(expected.pop("loaded"))
    assert values[1] == expected.pop("queues")
    for each in said["loaded"]:
        assert by_name[each["wire"]][0] == pytest.approx(each["utilisation"])
    for each in said["queues"]:
        assert by_name[each["wire"]][1] == each["bytes"]
    assert {key: said[key] for key in expected} == expected


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The folders of the drawn runs."""
    rng = random.Random(SEED)
    folders = []
    for number, scheme in enumerate(rng.sample(SCHEMES, RUNS)):
        keys: dict[str, Any] = {"topology": FAT_TREE, "workload": "permutation:size=128KiB", **scheme}
        keys |= {"record": rng.choice(("events", "packets")), "seed": rng.randrange(1, 1000)}
        if rng.random() < 0.8:
            keys["sample"] = rng.choice(("700ns", "3us"))
        folders.append(tmp_path_factory.mktemp("run") / str(number))
        tailrace.run(**keys, target="virtual", out=folders[-1])
    return folders


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if CHROMIUM is None:
        pytest.skip("no browser (on Debian: apt-get install chromium)")
    with browser() as opened:
        opened.size(1280, 900)
        yield opened
        assert opened.problems == []


def page_of(folder: Path, tmp_path: Path, **options: Any) -> Path:
    path = tmp_path / "run.html"
    tailrace.view(tailrace.open_result(folder), path=path, **options)
    return path


@pytest.mark.parametrize("number", range(RUNS))
def test_the_text_is_what_the_files_say(runs: list[Path], number: int, tab: Tab, tmp_path: Path) -> None:
    files = Files(runs[number])
    rng = random.Random(SEED + number)
    times = [0, files.end_ns, *(rng.uniform(0, files.end_ns) for _ in range(TIMES - 3))]
    times.append(rng.choice(files.record)["time_ns"])  # at an event
    tab.open(page_of(runs[number], tmp_path))
    for time_ns in times:
        (said,) = tab.evaluate(f"tailrace.describe({time_ns})")
        compare(said, files.describe(time_ns))
        # the section for readers has the same numbers
        tab.evaluate(f"tailrace.viewer.seek({time_ns}); tailrace.viewer.draw(1e9)")
        text = tab.evaluate("document.getElementById('text').textContent").replace(",", "")
        draining = said["flows"]["draining"]
        assert f"{said['flows']['active'] + draining} flows are active of which {draining} drain" in text
        for kind, words in (("path change", "path changes"), ("drain", "drains"), ("pause", "PFC pauses")):
            assert (f"{said['counts'][kind]} {words}" in text) == (said["counts"][kind] > 0)


@pytest.mark.parametrize("number", range(RUNS))
def test_the_text_at_the_end_is_the_summary(runs: list[Path], number: int, tab: Tab, tmp_path: Path) -> None:
    summary = Files(runs[number]).result.summary
    tab.open(page_of(runs[number], tmp_path))
    (said,) = tab.evaluate("tailrace.describe(1e15)")
    counts = said["counts"]
    assert said["flows"]["finished"] == summary.completed
    assert counts["path change"] == summary.path_changes
    assert counts["drain"] == summary.drains
    assert counts["timeout"] == summary.timeouts
    assert said["lost_data"] == summary.packets.dropped_data
    assert said["delivered"] in (None, summary.packets.delivered)
    if summary.pfc:
        assert counts["pause"] == summary.pfc["pauses"]
    if summary.recirculations:
        assert counts["recirculation"] == summary.recirculations.total
    if summary.packets.trimmed:
        assert counts["trim"] >= summary.packets.trimmed  # trimmed packets may be on links at the end


def test_paths_of_flows_are_those_by_which_data_came(runs: list[Path], tab: Tab, tmp_path: Path) -> None:
    for folder in runs:
        files = Files(folder)
        rng = random.Random(SEED)
        tab.open(page_of(folder, tmp_path))
        for _ in range(TIMES):
            time_ns, number = rng.uniform(0, files.end_ns), rng.randrange(len(files.result.rows))
            flow = sorted(files.result.rows, key=lambda row: row.id)[number]
            last = {
                files.target(row): row
                for row in files.record
                if row["what"] == "arrived"
                and row["flow"] == flow.id
                and row["frame"] in ("data", "retransmission")
                and row["time_ns"] <= time_ns
            }
            node = flow.dst
            expected: list[str] = []
            while node != flow.src and node in last:
                expected.insert(0, files.name(last[node]["node"], last[node]["port"]))
                node = last[node]["node"]
            code = f"tailrace.viewer.runs[0].path({number}, {time_ns}).map((w) => tailrace.viewer.runs[0].wireName(w))"
            assert tab.evaluate(code) == expected


# ---- the embedded data ----

CODES = {"u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "f8": "d"}


def embedded(page: str) -> list[tuple[dict[str, Any], dict[str, list[int]]]]:
    """Header and columns of each run in a page."""
    decoded = []
    for text in re.findall(r'<script type="application/gzip">([^<]*)</script>', page):
        data = gzip.decompress(base64.b64decode(text))
        start = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:start])
        columns: dict[str, list[int]] = {}
        for name, (kind, at, length, is_delta) in header["columns"].items():
            values: array[int] = array(CODES[kind])
            values.frombytes(data[start + at : start + at + length * values.itemsize])
            columns[name] = list(accumulate(values)) if is_delta else list(values)
        decoded.append((header, columns))
    return decoded


def test_a_page_has_the_runs_files(runs: list[Path], tmp_path: Path) -> None:
    for folder in runs:
        files = Files(folder)
        ((header, columns),) = embedded(page_of(folder, tmp_path).read_text("utf-8"))
        flows = sorted(files.result.rows, key=lambda row: row.id)
        for name in ("id", "bytes", "start_ns", "packets", "drains"):
            assert columns[f"flow_{name}"] == [getattr(row, name) for row in flows]
        assert columns["flow_end_ns"] == [-1 if row.end_ns is None else row.end_ns for row in flows]
        for name in ("time_ns", "count"):
            assert columns[name] == [row[name] for row in files.record]
        for name in ("psn", "bytes"):
            assert columns[name] == [-1 if row[name] is None else row[name] for row in files.record]
        assert [header["whats"][what] for what in columns["what"]] == [row["what"] for row in files.record]
        assert [[*header["frames"], None][number] for number in columns["frame"]] == [
            row["frame"] for row in files.record
        ]
        names = header["names"]
        for what, place, row in zip(columns["what"], columns["place"], files.record, strict=True):
            is_wire = header["whats"][what] in ("arrived", "failed")
            assert names[columns["wire_source"][place] if is_wire else place] == row["node"]
            assert not is_wire or columns["wire_port"][place] == row["port"]
        sampled = {
            (names[columns["wire_source"][wire]], columns["wire_port"][wire], time_ns): (
                columns["queue_bytes"][port * len(columns["sample_ns"]) + number],
                columns["tx_bytes"][port * len(columns["sample_ns"]) + number],
                columns["paused"][port * len(columns["sample_ns"]) + number],
            )
            for port, wire in enumerate(columns.get("port_wire", ()))
            for number, time_ns in enumerate(columns["sample_ns"])
        }
        assert sampled == {
            (row["switch"], row["port"], row["time_ns"]): (row["queue_bytes"], row["tx_bytes"], row["paused"])
            for row in files.samples
        }
