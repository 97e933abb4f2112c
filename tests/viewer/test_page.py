# SPDX-License-Identifier: Apache-2.0
"""The page of `tailrace view` in a browser: controls, keyboard, zoom, foreign texts, accessibility; and the command."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomli
from arro3.core import Table

import tailrace
from tailrace.cli.main import main
from tailrace.experiments.plan.known import topology_of
from tailrace.results.parquet import write_parquet
from tailrace.results.result import Result
from tailrace.results.run_files import RECORD
from tailrace.sim.pause import let_inspect
from tailrace.sim.timelines import RECORD_COLUMNS, Timelines
from tailrace.spec import SpecError
from tailrace.spec.limits import FACTOR
from tailrace.tables.arrow import make_table, values_of
from tailrace.viewer import data, page
from tests.experiments.test_hostile_texts import EVIL
from tests.viewer.browser import CHROMIUM, Tab, browser
from tests.viewer.test_replay import embedded

ROOT = Path(__file__).resolve().parents[2]
VENDOR = ROOT / "tailrace" / "viewer" / "vendor"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
KEYS: dict[str, Any] = {
    "topology": "leaf-spine:leaves=3,spines=2,hosts=3,rate=10Gbps",
    "workload": "permutation:size=64KiB",
    "target": "virtual",
}
TIME = "tailrace.viewer.time"


def run(**keys: Any) -> Result:
    usual = {"scheme": "flowcut:variant=nic", "record": "packets", "sample": "2us"}
    given = {**KEYS, **usual, **keys}
    return tailrace.run(**{key: value for key, value in given.items() if value is not None})


@pytest.fixture(scope="module")
def result() -> Result:
    return run()


@pytest.fixture(scope="module")
def many() -> Result:
    """128 hosts, few flows."""
    traffic = {"topology": "fat-tree:k=8", "workload": "random:flows=30,size=32KiB"}
    return run(**traffic, record="events")


@pytest.fixture(scope="module")
def opened() -> Iterator[Tab]:
    if CHROMIUM is None:
        pytest.skip("no browser (on Debian: apt-get install chromium)")
    with browser() as tab:
        yield tab


@pytest.fixture
def tab(opened: Tab) -> Iterator[Tab]:
    opened.size(1280, 900)
    yield opened
    assert opened.problems == []


def show(tab: Tab, path: Path, *results: Result, **options: Any) -> str:
    tailrace.view(*results, path=path / "run.html", **options)
    tab.open(path / "run.html")
    return (path / "run.html").read_text("utf-8")


def record_of(result: Result) -> dict[str, list[Any]]:
    assert result.timelines.record is not None
    return values_of(result.timelines.record)


def end_of(result: Result) -> int:
    assert isinstance(result.summary.virtual_ns, int)
    return result.summary.virtual_ns


def values(tab: Tab, *codes: str) -> list[Any]:
    return [tab.evaluate(f"tailrace.viewer.{code}") for code in codes]


# ---- what is shown ----


@pytest.mark.parametrize(
    ("record", "sample", "shown"),
    [
        ("packets", "2us", {"utilisation", "queue", "paused", "data"}),
        ("packets", None, {"paused", "data"}),
        ("events", "2us", {"utilisation", "queue", "paused"}),
        ("events", None, {"paused"}),
    ],
)
def test_the_legend_has_what_the_run_has(
    tab: Tab, tmp_path: Path, record: str, sample: str | None, shown: set[str]
) -> None:
    show(tab, tmp_path, run(record=record, sample=sample))
    legend = tab.evaluate("document.getElementById('legend').innerText")
    assert {name for name in ("utilisation", "queue", "paused", "data") if name in legend} == shown
    assert tab.evaluate("document.getElementById('find').placeholder") == "leaf1, or flow 1"


def test_units_fit_the_values(tab: Tab, tmp_path: Path) -> None:
    """Rates of links in Mb/s, a run of a tenth of a second in ms, bytes in MiB."""
    slow = run(topology="leaf-spine:leaves=2,spines=1,hosts=1,rate=100Mbps", workload="permutation:size=1MiB")
    show(tab, tmp_path, slow)
    assert (
        tab.evaluate("document.getElementById('clock').value")
        == f"0.000000 ms of {end_of(slow) / 1e6:,.6f} ms"
    )
    tab.evaluate("tailrace.viewer.choose({ type: 'node', id: 3 }); tailrace.viewer.draw(1e9)")
    text = tab.evaluate("document.getElementById('chosen').innerText")
    assert "100.0 Mb/s" in text and "1.0 MiB" in text


# ---- controls ----


def test_keys_and_buttons(tab: Tab, result: Result, tmp_path: Path) -> None:
    show(tab, tmp_path, result)
    assert result.timelines.queues is not None
    samples = sorted(set(values_of(result.timelines.queues)["time_ns"]))
    end_ns = end_of(result)
    for key, time_ns in (("ArrowRight", samples[1]), ("ArrowRight", samples[2]), ("ArrowLeft", samples[1])):
        tab.press(key)
        assert tab.evaluate(TIME) == time_ns
    tab.press("End")
    assert tab.evaluate(TIME) == end_ns
    tab.press("Home")
    assert tab.evaluate(TIME) == 0
    quiet = ("arrived", "resume")
    events = [row for row in zip(*record_of(result).values(), strict=True) if row[1] not in quiet]
    shown = sorted({row[0] for row in events})
    if shown:
        tab.press("]")
        assert tab.evaluate(TIME) == shown[0]
    speed = tab.evaluate("tailrace.viewer.speed")
    tab.press("+")
    tab.press("+")
    tab.press("-")
    assert tab.evaluate("tailrace.viewer.speed") == 2 * speed
    tab.press("t")
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
    tab.press("?")
    assert tab.evaluate("document.getElementById('keys').open")
    tab.press("?")
    assert not tab.evaluate("document.getElementById('keys').open")


def test_it_plays_to_the_end(tab: Tab, result: Result, tmp_path: Path) -> None:
    show(tab, tmp_path, result)
    wait = "new Promise((done) => setTimeout(done, 300))"
    tab.press(" ", " ")
    tab.evaluate(wait)
    assert tab.evaluate("tailrace.viewer.playing")
    assert 0 < tab.evaluate(TIME) < end_of(result)
    tab.press(" ", " ")
    paused = tab.evaluate(TIME)
    tab.evaluate(wait)
    assert tab.evaluate(TIME) == paused
    tab.evaluate("tailrace.viewer.setSpeed(1e15); tailrace.viewer.play(true)")
    tab.evaluate(
        "new Promise((done) => { const w = () => tailrace.viewer.playing ? setTimeout(w, 20) : done(); w(); })"
    )
    assert tab.evaluate(TIME) == end_of(result)


def test_zooming_opens_groups_and_keeps_sums(tab: Tab, many: Result, tmp_path: Path) -> None:
    """At each level of detail the links between what is drawn have all samples of their ports, each once."""
    show(tab, tmp_path, many)
    time_ns = end_of(many) // 2
    drawn = []
    for scale in (1, 8, 14, 40):
        boxes, edges = tab.evaluate(f"""(() => {{
            const {{ layout, run }} = tailrace.viewer.pictures[0];
            const view = layout.view({scale});
            const sum = (edge) => tailrace.viewer.pictures[0].load(edge, run.binAt({time_ns}));
            const port = (wire) => run.load(wire, run.binAt({time_ns}));
            const inner = new Set(run.column.wire_source.keys());
            view.edges.forEach((edge) => edge.wires.forEach((wire) => inner.delete(wire)));
            for (const wire of inner)
                if (view.boxOf[run.column.wire_source[wire]] !== view.boxOf[run.column.wire_target[wire]]) throw "lost";
            return [view.boxes.map((box) => box.label), view.edges.map((edge) => [sum(edge), edge.wires.map(port)])];
        }})()""")
        drawn.append(len(boxes))
        for total, ports in edges:
            sampled = [port for port in ports if port is not None]
            assert total["bytes"] == max((port["bytes"] for port in sampled), default=0)
            if sampled:
                sent, room = (sum(port[key] for port in sampled) for key in ("sent", "capacity"))
                assert total["utilisation"] == pytest.approx(sent / room)
            else:
                assert total["utilisation"] is None
    # 8 pods and 16 core switches; 64 edge and aggregation switches; their hosts
    assert drawn == [8 + 16, 64 + 16, 128 + 64 + 16, 128 + 64 + 16]
    scale = tab.evaluate("tailrace.viewer.transform.k")
    tab.press("z")
    assert tab.evaluate("tailrace.viewer.transform.k") > scale
    tab.press("0")
    assert tab.evaluate("tailrace.viewer.transform.k") == scale


def test_a_click_on_a_node_link_or_flow_shows_its_values(tab: Tab, result: Result, tmp_path: Path) -> None:
    show(tab, tmp_path, result)
    tab.evaluate("tailrace.viewer.seek(30000); tailrace.viewer.draw(1e9)")
    click = """(() => {{
        const picture = tailrace.viewer.pictures[0];
        const [x, y] = {place};
        const {{ left, top }} = picture.canvas.getBoundingClientRect();
        picture.canvas.dispatchEvent(new MouseEvent("click", {{ clientX: left + x, clientY: top + y }}));
        tailrace.viewer.draw(1e9);
        return document.getElementById("chosen").innerText;
    }})()"""
    node = "picture.transform.apply([picture.layout.boxes[0].x, picture.layout.boxes[0].y])"
    assert "leaf1, leaf switch" in tab.evaluate(click.format(place=node))
    link = "picture.part(picture.lines[0].line, 0.4, 0.4)"
    name = tab.evaluate("tailrace.viewer.runs[0].wireName(tailrace.viewer.pictures[0].lines[0].wires[0])")
    assert name in tab.evaluate(click.format(place=link))
    tab.evaluate("document.querySelector('#flows button').click(); tailrace.viewer.draw(1e9)")
    row = min(result.rows, key=lambda row: row.id)
    text = tab.evaluate("document.getElementById('chosen').innerText")
    assert f"flow {row.id} · {row.src} → {row.dst} · 64.0 KiB" in text
    assert f"ends at {(row.end_ns or 0) / 1000:,.3f} µs" in text


def test_frames_are_drawn_on_their_links_while_they_are_there(
    tab: Tab, result: Result, tmp_path: Path
) -> None:
    """Between departure, which follows from rate, delay and length, and the recorded arrival."""
    show(tab, tmp_path, result)
    record = record_of(result)
    network = topology_of(KEYS["topology"])
    hosts = {host.name: host for host in network.hosts}
    departures = {}
    for row, (what, node, port, time_ns, length) in enumerate(
        zip(*(record[name] for name in ("what", "node", "port", "time_ns", "bytes")), strict=True)
    ):
        if what in ("arrived", "failed"):
            peer = None if node in hosts else network.ports_of(node)[port]
            link = hosts[node] if peer is None else peer
            latency_ns = 0 if peer is not None and peer.kind == "host" else network.latency_ns
            sending_ns = 8e9 * max(64, length) / link.rate_bps
            departures[row] = time_ns - link.delay_ns - latency_ns - sending_ns
    for time_ns in (5_000, 12_345, 40_000.5):
        flights = tab.evaluate(f"""(() => {{
            const seen = [], run = tailrace.viewer.runs[0];
            run.eachFlight({time_ns}, (row, share) => seen.push([row, share]));
            return seen;
        }})()""")
        expected = {
            row: (time_ns - departed) / (record["time_ns"][row] - departed)
            for row, departed in departures.items()
            if departed <= time_ns < record["time_ns"][row]
        }
        assert len(expected) > 0
        assert dict(flights) == pytest.approx(expected)


RING = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a"), ("a", "c")]
NETWORKS = (
    "leaf-spine:leaves=9,spines=3,hosts=13",
    "fat-tree:k=4",
    "dragonfly:p=2,a=3,h=1",
    "slim-fly:q=3,p=1",
    "ring.json:hosts=1",
)


@pytest.mark.parametrize("topology", NETWORKS)
def test_nodes_have_places_of_their_own(
    tab: Tab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, topology: str
) -> None:
    monkeypatch.chdir(tmp_path)
    nodes = [{"id": name} for name in sorted({name for link in RING for name in link})]
    links = [{"source": a, "target": b} for a, b in RING]
    Path("ring.json").write_text(json.dumps({"nodes": nodes, "links": links}), "utf-8")
    shown = run(scheme="ecmp", topology=topology, workload="random:flows=2,size=1KiB", record="events")
    show(tab, tmp_path, shown)
    places = tab.evaluate("tailrace.viewer.pictures[0].layout.boxes.map(({ x, y }) => [x, y])")
    network = topology_of(topology)
    assert len(places) == len(network.switches) + len(network.hosts)
    for number, (x, y) in enumerate(places):
        assert min((abs(x - a) + abs(y - b) for a, b in places[:number]), default=1) > 0.5
    # everything is in the picture
    inside = """tailrace.viewer.pictures.every((picture) => picture.layout.boxes.every((box) => {
        const [x, y] = tailrace.viewer.transform.apply([box.x, box.y]);
        return x > 0 && y > 0 && x < picture.width && y < picture.height;
    }))"""
    assert tab.evaluate(inside)


def test_two_runs_have_one_clock(tab: Tab, result: Result, tmp_path: Path) -> None:
    other = run(scheme="ecmp")
    show(tab, tmp_path, result, other)
    said = tab.evaluate("tailrace.describe(30000)")
    assert [each["delivered"] > 0 for each in said] == [True, True]
    assert tab.evaluate("tailrace.viewer.end") == max(end_of(result), end_of(other))
    headings = tab.evaluate("[...document.querySelectorAll('#text h3')].map((each) => each.textContent)")
    assert headings == ["A: flowcut:variant=nic", "B: ecmp"]
    tab.press("z")
    assert len(set(values(tab, "pictures[0].canvas.__zoom.k", "pictures[1].canvas.__zoom.k"))) == 1


def test_without_samples_it_says_so(tab: Tab, tmp_path: Path) -> None:
    show(tab, tmp_path, run(sample=None, record="events"))
    assert "not sampled" in tab.evaluate("document.getElementById('text').textContent")
    tab.press("]")
    assert (
        tab.evaluate(
            "tailrace.viewer.pictures[0].load(tailrace.viewer.pictures[0].lines[0], null).utilisation"
        )
        is None
    )


# ---- foreign texts, accessibility ----


@pytest.mark.parametrize("text", EVIL[:2])
def test_foreign_texts_stay_texts(tab: Tab, result: Result, tmp_path: Path, text: str) -> None:
    assert result.timelines.record is not None
    record = record_of(result)
    record["frame"][0] = text
    foreign = dataclasses.replace(
        result,
        label=text,
        case=text,
        timelines=Timelines(result.timelines.queues, None, make_table(record, RECORD_COLUMNS)),
    )
    content = show(tab, tmp_path, foreign)
    assert content.count("<script") == 1 + len(list(VENDOR.glob("*.js"))) + 4
    assert text not in content
    assert tab.evaluate("document.title") == f"{text} · Tailrace"
    caption = tab.evaluate("document.querySelector('figcaption').textContent")
    assert text in caption
    assert tab.evaluate("document.querySelectorAll('svg, img, a').length") == 0


def test_no_script_runs_that_is_not_in_the_page(tab: Tab, result: Result, tmp_path: Path) -> None:
    show(tab, tmp_path, result)
    tab.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.bad = 1' }))"
    )
    assert tab.evaluate("window.bad") is None
    assert any("Content Security Policy" in problem for problem in tab.problems)
    tab.problems.clear()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing(tab: Tab, result: Result, tmp_path: Path, dark: bool, width: int) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is missing (npm install --no-save axe-core@4.14.1)")
    tab.size(width, 900, dark)
    show(tab, tmp_path, result, run(scheme="ecmp"))
    tab.evaluate(
        "tailrace.viewer.seek(30000); tailrace.viewer.choose({ type: 'node', id: 0 }); tailrace.viewer.draw(1e9)"
    )
    tab.evaluate(AXE.read_text("utf-8") + "; true")
    violations = tab.evaluate(
        "axe.run().then(({ violations }) => violations.map(({ id, impact, nodes }) => [id, impact, nodes[0].html]))"
    )
    assert violations == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


# ---- tables at stops ----


def test_tables_at_stops_are_those_of_the_paused_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    keys = {
        "scheme": "flowcut:variant=full,buckets=16",
        "workload": "permutation:size=32KiB",
        "record": "events",
    }
    shown: list[dict[str, Any]] = []

    def look() -> None:
        capsys.readouterr()
        tables = {}
        for command in ("flows", "tables"):
            assert main([command, "-o", "json"]) == 0
            tables[command] = json.loads(capsys.readouterr().out)
        shown.append(tables)

    paused = run(**keys, stop_at=["15us", "30us"], at_stop=let_inspect(lambda _text: None, look))
    tailrace.view(paused, path=tmp_path / "run.html", state=["15us", "30us", "1s"])
    ((header, _),) = embedded((tmp_path / "run.html").read_text("utf-8"))
    assert [stop["time_ns"] for stop in header["state"]] == [15000, 30000]
    for stop, tables in zip(header["state"], shown, strict=True):
        flows, entries = stop["listings"]
        assert len(tables["flows"]) > 0
        for listing, rows in ((flows, tables["flows"]), (entries, tables["tables"])):
            assert len(listing["rows"]) == len(rows)
            for texts, row in zip(listing["rows"], rows, strict=True):
                cells = dict(zip(listing["columns"], texts, strict=True))
                for name in ("switch", "state", "table", "action", "in_flight_bytes", "bucket"):
                    if row.get(name) is not None:
                        assert cells[name].replace(",", "") == str(row[name])


# ---- the command ----


def test_the_command_writes_a_page_of_a_comparison(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = ["--topology", KEYS["topology"], "--workload", KEYS["workload"], "--target", "virtual"]
    words = [
        "compare",
        "--scheme",
        "ecmp,letflow",
        *traffic,
        "--record",
        "events",
        "--out",
        str(tmp_path / "out"),
    ]
    assert main(words) == 0
    capsys.readouterr()
    assert main(["view", str(tmp_path / "out")]) == 0
    written = Path(capsys.readouterr().out.strip())
    assert written == tmp_path / "out" / "view.html"
    assert [header["label"] for header, _ in embedded(written.read_text("utf-8"))] == ["ecmp", "letflow"]
    assert main(["view", str(tmp_path / "out" / "clean"), "--out", str(tmp_path / "case.html")]) == 0
    assert (tmp_path / "case.html").read_text("utf-8") == written.read_text("utf-8")
    assert main(["view", str(tmp_path / "out"), str(tmp_path / "out")]) == 2
    assert "found 4" in capsys.readouterr().err


def refused(results: list[Result], words: str, path: Path, **options: Any) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        tailrace.view(*results, path=path, **options)
    assert "\n" not in str(caught.value)
    assert not path.exists()


def test_bad_input_gets_a_line(result: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.html"
    refused([], "found 0", path)
    refused([dataclasses.replace(result, timelines=Timelines())], "no record.*--record events", path)
    refused([result, run(workload="permutation:size=32KiB")], "differ in more than the scheme", path)
    refused([result], "--state: .*soon", path, state=["soon"])
    refused([result], "no such|exist|director", tmp_path / "none" / "run.html")
    for column, row, value in (
        ("node", 0, "nowhere"), ("port", 0, 99), ("flow", 0, 10**9), ("what", 0, "vanished"),
        ("time_ns", 5, None), ("count", 5, None),
    ):  # fmt: skip
        record = record_of(result)
        record[column][row] = value
        broken = dataclasses.replace(result, timelines=Timelines(record=make_table(record, RECORD_COLUMNS)))
        refused([broken], "do not fit", path)
    assert result.timelines.queues is not None
    fewer = Table.from_batches(result.timelines.queues.to_batches()).slice(1)
    refused(
        [dataclasses.replace(result, timelines=dataclasses.replace(result.timelines, queues=fewer))],
        "lacks the row",
        path,
    )
    monkeypatch.setattr(data, "MOST_ROWS", 10)
    refused([result], f"limit is 10 .*{FACTOR}", path)
    monkeypatch.setattr(data, "MOST_ROWS", 10**9)
    monkeypatch.setattr(page, "MOST_BYTES", 1000)
    refused([result], "limit is 1,000", path)
    monkeypatch.setattr(page, "MOST_BYTES", 10**9)
    tailrace.view(dataclasses.replace(result, label="a\udcffb"), path=path)
    assert b"<title>a\\udcffb" in path.read_bytes()


def test_a_broken_record_file_gets_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(out=tmp_path, record="events")
    (tmp_path / RECORD).write_bytes(b"PAR1")
    assert main(["view", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    write_parquet(make_table({"time_ns": [1]}, RECORD_COLUMNS), tmp_path / RECORD)
    assert main(["view", str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_what_is_bundled_is_what_the_manifest_says() -> None:
    manifest = tomli.loads((VENDOR / "manifest.toml").read_text("utf-8"))
    files = {path.name: path.read_bytes() for path in VENDOR.glob("*.js")}
    assert files.keys() == manifest.keys()
    licence = (VENDOR / "LICENSE").read_text("utf-8")
    for name, about in manifest.items():
        assert hashlib.sha256(files[name]).hexdigest() == about["sha256"]
        assert f"v{about['version']} " in files[name].decode().splitlines()[0]
        assert name.removesuffix(".min.js") in licence
