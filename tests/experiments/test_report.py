# SPDX-License-Identifier: Apache-2.0
"""Reports of runs, comparisons and sweeps: one page that holds everything it shows."""

from __future__ import annotations

import html
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars
import pytest
from arro3.core import Table
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.colors import to_hex

from tailrace.cli.main import main
from tailrace.report.figures import plot
from tailrace.report.figures.plot import NATURAL, inline_svg
from tailrace.report.network_figures import longest_queues
from tailrace.report.topology_map import MOST_HOSTS, topology_figure
from tailrace.topology import parse_topology
from tests.papers.test_flowcut import BROWSERS, TIMEOUT_S

SMALL = ("--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2")
SINGLE_SWITCH = "leaf-spine:leaves=1,spines=1,hosts=4"
VOID = {"meta", "br", "hr", "img", "input", "link", "path", "use"}


class Page(HTMLParser):
    """Tags that are open, all ids, everything that refers elsewhere, and the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [values["id"] or ""] if "id" in values else []
        self.references += [values[key] or "" for key in ("href", "src") if key in values]
        self.references += re.findall(r"url\(([^)]*)\)", " ".join(value or "" for value in values.values()))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def report(folder: Path) -> Page:
    assert main(["report", str(folder)]) == 0
    page = Page((folder / "report.html").read_text())
    assert page.open == []
    assert len(set(page.ids)) == len(page.ids)
    # nothing is fetched, and everything that is pointed at is there
    assert {reference for reference in page.references if not reference.startswith("#")} == set()
    assert {reference[1:] for reference in page.references} <= set(page.ids)
    return page


def test_report_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Queues and paths over time where they were looked at, the seed, and the command that repeats it."""
    out = tmp_path / "out"
    words = ["run", "--scheme", "spray", *SMALL, "--workload", "incast:degree=3,size=32KiB"]
    assert main([*words, "--sample", "1us", "--follow", "1", "--follow", "2", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {
        "summary.json", "flows.parquet", "queues.parquet", "paths.parquet",
    }  # fmt: skip
    page = report(out)
    for text in ("Flow completion times", "The longest queues: clean, Spray", "Paths of followed flows"):
        assert text in page.text
    assert "flow 2: packets at switches" in page.text
    assert "tailrace run --scheme spray --topology leaf-spine:leaves=2,spines=2,hosts=2" in page.text
    assert capsys.readouterr().out.splitlines()[-1] == str(out / "report.html")


def test_timelines(tmp_path: Path) -> None:
    """An incast's queue is before the receiver; a path begins at the sender's switch and is in order of time."""
    out = tmp_path / "out"
    words = [
        "run",
        "--scheme",
        "ecmp",
        "--target",
        "virtual",
        "--topology",
        SINGLE_SWITCH,
        "--workload",
        "incast:degree=3,size=32KiB",
    ]
    assert main([*words, "--sample", "1us", "--follow", "1", "--out", str(out)]) == 0
    flows = polars.read_parquet(out / "flows.parquet")
    queues = polars.read_parquet(out / "queues.parquet")
    longest = queues.sort("queue_bytes", descending=True).row(0, named=True)
    assert longest["peer"] == flows["dst"][0]
    assert queues["time_ns"].unique().sort().diff().drop_nulls().unique().to_list() == [1000]
    path = polars.read_parquet(out / "paths.parquet")
    assert path["flow"].unique().to_list() == [1]
    assert path["time_ns"].is_sorted()
    assert path["peer"][0] == flows.row(by_predicate=polars.col("id") == 1, named=True)["src"]


def test_watch_of_no_flow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that says how many there are."""
    assert main(["run", "--scheme", "ecmp", *SMALL, "--follow", "99", "--out", str(tmp_path / "out")]) == 2
    assert "follow: there is no flow 99; the run has 4 flows" in capsys.readouterr().err.splitlines()[-1]


def test_report_of_a_comparison(tmp_path: Path) -> None:
    """Cases and schemes in one table; the slow link is drawn in red."""
    out = tmp_path / "out"
    fault = ("--fault", "link-slow:link=leaf1-spine1,factor=0.5")
    words = ["compare", "--scheme", "ecmp,flowcut", *SMALL, "--workload", "permutation:size=16KiB", *fault]
    assert main([*words, "--out", str(out)]) == 0
    page = report(out)
    for text in ("Results: ", "clean", "link-slow", "flowcut", "faulty link", "Slowdown: "):
        assert text in page.text
    assert "tailrace compare --scheme ecmp,flowcut" in page.text


def test_report_of_a_sweep_and_of_a_folder_of_folders(tmp_path: Path) -> None:
    """Below a folder everything is found."""
    words = ["sweep", "--set", "scheme=ecmp,spray", *SMALL, "--workload", "random:flows=12,size=16KiB"]
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    assert main(["run", "--scheme", "ecmp", *SMALL, "--out", str(tmp_path / "b")]) == 0
    page = report(tmp_path)
    assert f"Results: {tmp_path / 'a'}" in page.text
    assert "spray" in page.text
    assert "tailrace sweep --set scheme=ecmp,spray --topology leaf-spine:leaves=2" in page.text
    assert f"Results: {tmp_path / 'b'}" in page.text


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison with long names, three seeds and samples; no packet is out of order."""
    out = tmp_path_factory.mktemp("compared") / "out"
    words = ["compare", "--scheme", "ecmp,flowcut:variant=nic,rtt=30", *SMALL, "--seed", "1..3"]
    words += ["--workload", "permutation:size=16KiB", "--sample", "1us", "--out", str(out)]
    assert main(words) == 0
    return out


def test_headline_first_provenance_last(compared: Path) -> None:
    """What won, with the interval; figures; the table; then settings and the command. Nothing that is all 0."""
    text = report(compared).text
    (line,) = (line for line in text.splitlines() if line.startswith("clean: "))
    assert re.search(r"\d\.\d{2,5} times \(\d\.\d{2,5} to \d\.\d{2,5}\)", line)
    order = (line, "Flow completion times", "median FCT", "trace sha256", "tailrace compare")
    parts = [text.index(part) for part in order]
    assert parts == sorted(parts)
    assert "packets out of order" in text
    assert "First transmissions that arrived out of order" not in text


@pytest.mark.parametrize("width", [1280, 390])
def test_a_page_fits_the_screen(width: int, compared: Path, tmp_path: Path) -> None:
    """In a real browser nothing is wider than the screen, except for tables, which scroll in their boxes."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.skip(f"none of {', '.join(BROWSERS)} is installed")
    report(compared)
    page = (compared / "report.html").read_text().replace("Content-Security-Policy", "off")
    measure = """
      const page = document.querySelector("iframe").contentDocument, wide = [];
      for (const each of page.querySelectorAll("section, figure, p, h2, pre, svg, table, code"))
        if (each.getBoundingClientRect().right > WIDTH) wide.push(each.tagName);
      document.title = JSON.stringify([page.documentElement.scrollWidth, wide]);
    """.replace("WIDTH", str(width))
    frame = (
        f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{html.escape(page)}"></iframe>'
    )
    outer = tmp_path / "outer.html"
    outer.write_text(f"<!DOCTYPE html><body>{frame}<script>onload = () => {{{measure}}}</script></body>")
    command = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
    ]
    dumped = subprocess.run(
        [*command, "--window-size=1400,1000", "--dump-dom", outer.as_uri()],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    ).stdout
    title = re.search("<title>(.*?)</title>", dumped)
    assert title is not None
    page_width, wide = json.loads(html.unescape(title[1]))
    assert (page_width <= width, wide) == (True, [])


@pytest.mark.parametrize("count", [2, 7, 60])
def test_a_legend_stays_within_its_figure(count: int) -> None:
    """In as many columns as fit, however long the names and however many there are."""
    with plot.style():
        figure, axes = plot.panels(1)
        for number in range(count):
            axes[0].plot([0, 1], [0, number], label=f"seed={number}, scheme=flowcut:variant=nic")
        plot.legend(figure, *axes)
        figure.savefig(io.BytesIO(), format="svg")
    [legend] = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert box.width <= whole.width
    assert box.y0 >= 0
    assert axes[0].get_window_extent().height > whole.height / 10
    assert len(legend.get_texts()) == min(count, 24)


@pytest.mark.parametrize(
    "words",
    ["leaf-spine:leaves=3,spines=2,hosts=2", "fat-tree:k=4", "dragonfly:p=1,a=2,h=1", "slim-fly:p=1,q=5"],
)
def test_topology_picture(words: str) -> None:
    """Every kind of network; hosts only where they are not too many."""
    topology = parse_topology(words)
    svg = inline_svg(topology_figure(topology), "it", "a & b")
    assert svg.startswith("<svg ")
    assert 'aria-label="a &amp; b"' in svg
    assert (f"{len(topology.hosts)} host" in svg) == (len(topology.hosts) <= MOST_HOSTS)


def test_nothing_has_the_colour_of_faulty_links() -> None:
    """Nor nearly so; the line in the legend looks as those in the picture do."""
    topology = parse_topology("fat-tree:k=4")
    link = topology.links[0]
    figure = topology_figure(topology, {frozenset((link.a, link.b))})
    (axis,) = figure.axes
    (line,) = axis.lines
    lines: list[Any] = [each for each in axis.collections if isinstance(each, LineCollection)]
    dots: list[Any] = [each for each in axis.collections if isinstance(each, PathCollection)]
    healthy, faulty = lines
    colour = faulty.get_colors()[0]
    assert (len(faulty.get_paths()), str(line.get_color()).lower()) == (1, to_hex(colour))
    assert line.get_linewidth() == faulty.get_linewidths()[0] > healthy.get_linewidths()[0]
    assert len(dots) == 4, "hosts, edge, agg, core"
    assert min(abs(each.get_facecolors()[0] - colour).max() for each in dots) > 0.4


def _triangle(path: Path, switches: int) -> None:
    """A ring of so many switches, a host on each, as the tutorials write it."""
    names = [f"s{number}" for number in range(1, switches + 1)]
    hosts = {
        f"h{number}": {"ip": f"10.0.{number}.1/24", "mac": f"08:00:00:00:0{number}:11"}
        for number in range(1, switches + 1)
    }
    links = [[f"h{number}", f"s{number}-p1"] for number in range(1, switches + 1)]
    links += [
        [f"{name}-p2", f"{after}-p3"] for name, after in zip(names, [*names[1:], names[0]], strict=True)
    ]
    path.write_text(json.dumps({"hosts": hosts, "switches": {name: {} for name in names}, "links": links}))


def test_a_topology_file_that_changed_or_went(tmp_path: Path) -> None:
    """Figures of the network are left out, and the page names the file, whose name is no formula; all others are
    there.
    """
    file, out = tmp_path / "$\\frac{.json", tmp_path / "out"
    _triangle(file, 3)
    words = ["run", "--scheme", "ecmp", "--target", "virtual", "--workload", "permutation:size=1KiB"]
    assert main([*words, "--topology", str(file), "--sample", "1us", "--follow", "1", "--out", str(out)]) == 0
    drawn = ("The network:", "Throughput: what switches send", "Throughput of followed flows")
    page = report(out)
    assert all(text in page.text for text in drawn)
    assert "no figures of the network" not in page.text
    for change, problem in (
        (lambda: _triangle(file, 4), f"{file}: another network than that of the run, which had s"),
        (file.unlink, f"{file}: "),
    ):
        change()
        page = report(out)
        assert f"no figures of the network: {problem}" in page.text
        assert not any(text in page.text for text in drawn)
        assert "Flow completion times" in page.text


def test_names_of_files_that_are_no_text(tmp_path: Path) -> None:
    """They are shown with escapes."""
    out = tmp_path / "results\udcff"
    assert (
        main(
            ["run", "--scheme", "ecmp", *SMALL, "--workload", "incast:degree=3,size=1KiB", "--out", str(out)]
        )
        == 0
    )
    assert main(["report", str(out), "--title", "t\udcfe"]) == 0
    page = Page((out / "report.html").read_text())
    assert "results\\udcff" in page.text
    assert "t\\udcfe" in page.text


def test_queues_are_lines_over_time() -> None:
    """The longest queue first; samples of a port in the order of time."""
    samples = [("s1", 1, "h1", 2000, 1024), ("s1", 2, "h2", 1000, 8192), ("s1", 1, "h1", 1000, 2048)]
    columns = ("switch", "port", "peer", "time_ns", "queue_bytes")
    table = Table.from_arrow(polars.DataFrame(samples, schema=columns, orient="row"))
    result = SimpleNamespace(timelines=SimpleNamespace(queues=table))
    results: Any = SimpleNamespace(results=[result])
    figure = longest_queues.draw(results, NATURAL)
    assert figure is not None
    lines = {
        str(line.get_label()): np.asarray(line.get_ydata()).tolist() for line in figure.axes[0].get_lines()
    }
    assert list(lines.items()) == [("s1 → h2", [8]), ("s1 → h1", [2, 1])]
