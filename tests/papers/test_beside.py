# SPDX-License-Identifier: Apache-2.0
"""Figures beside a peer: what its output says, ratios of independent samples, and the page with both."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from tailrace.cli.main import main
from tailrace.papers.beside import commands
from tailrace.papers.document import Document, read_document
from tailrace.papers.model import FOLDER, read_paper, read_paper_file
from tailrace.papers.outputs import metrics_of, read_output
from tailrace.results.estimates import SeedValues, independent_ratio
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError

NAME = "beside_reps"
CLONE = Path("REPS_EuroSys_Artifact/htsim/sim/datacenter")
TOPOLOGY = """Nodes 4
Tiers 2
Podsize 4
Tier 0
Downlink_speed_Gbps 400
Radix_Down 2
Radix_Up 2
Downlink_Latency_ns 1000
Tier 1
Downlink_speed_Gbps 400
Radix_Down 2
Downlink_Latency_ns 1000
"""
FLOWS = ((0, 2), (1, 3), (2, 0), (3, 1))


def line(flow: int, what: str, time_us: float) -> str:
    """A line of htsim."""
    return f"Flow Uec_{flow}_9 flowId {flow} uecSrc {flow} {what} at {time_us:g} total packets 3\n"


@pytest.fixture
def peers(tmp_path: Path) -> Path:
    """A folder of all peers with REPS's inputs for four hosts, and outputs with FCTs of 10 to 13 us."""
    for folder, name, text in (
        ("topologies/reps", "fat_tree_128_1os_2t_400g.topo", TOPOLOGY),
        (
            "connection_matrices",
            "perm_n128_s8388608.cm",
            "Nodes 4\nConnections 4\n"
            + "".join(f"{src}->{dst} id {src + 1} start 0 size 65536\n" for src, dst in FLOWS),
        ),
    ):
        (tmp_path / CLONE / folder).mkdir(parents=True)
        (tmp_path / CLONE / folder / name).write_text(text)
    (tmp_path / NAME).mkdir()
    for scheme in ("reps", "ops", "plb"):
        for seed in range(1, 6):
            text = "".join(line(flow, "finished", 10 + flow + seed / 100) for flow in range(4))
            (tmp_path / NAME / f"{scheme}-{seed}.out").write_text(
                f"setting up\n{text}real 9.00\nuser 4.00\nsys 0.50\n"
            )
    return tmp_path


def run(out: Path, *options: str | Path) -> Document:
    """What `tailrace paper beside_reps` writes."""
    assert (
        main(["paper", NAME, "--scale", "paper", "--seed", "1..3", "--out", str(out), *map(str, options)])
        == 0
    )
    return read_document(out / "paper" / NAME / "result.json")


def test_theirs_ours_and_the_ratio(peers: Path, tmp_path: Path) -> None:
    """Of each scheme; the document names no folder of this machine."""
    document = run(tmp_path / "out", "--beside", peers)
    assert [cell.label for cell in document.cells] == ["reps", "ops", "plb"]
    for cell in document.cells:
        assert cell.theirs["fct_mean"][0] == pytest.approx(11_530)
        ours, (ratio, low, high) = cell.metrics["fct_mean"], cell.ratios["fct_mean"]
        assert ratio == pytest.approx(ours / 11_530)
        assert low < ratio < high
        assert cell.theirs["fct_max"][0] == pytest.approx(13_030)
        far = any(not 0.9 <= each[0] <= 1.1 for each in cell.ratios.values())
        assert cell.note == (f"{cell.label}: unexplained." if far else "")
    assert "CPU time of a run, set-up included: 4.5 s there" in document.notes[-2]
    assert str(tmp_path) not in (tmp_path / "out" / "paper" / NAME / "result.json").read_text()


def test_recorded_numbers_need_no_peer(
    peers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A page keeps them, with the commands that repeat them; without a page there are none."""
    pages = tmp_path / "pages"
    measured = run(tmp_path / "a", "--beside", peers, "--page", pages)
    again = run(tmp_path / "b", "--page", pages)
    assert [cell.theirs for cell in again.cells] == [cell.theirs for cell in measured.cells]
    assert f"[Commands](beside/{NAME}.sh)" in (pages / "beside.md").read_text()
    script = (pages / "beside" / f"{NAME}.sh").read_text()
    file = read_paper(NAME)
    assert file.beside is not None
    for spec, command in commands(NAME, file, file.beside, "paper").values():
        assert spec in script
        assert command in script
    assert not list(pages.glob("*.parquet"))
    capsys.readouterr()
    assert not run(tmp_path / "c", "--store", tmp_path / "empty").cells
    assert f"{NAME}: no recorded numbers; --beside FOLDER" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (None, "missing; expected the output of: for seed in 1 2 3 4 5; do (time -p REPS_EuroSys_Artifact/"),
        ("Segmentation fault\n", "htsim-duration: expected lines `Flow … finished at …`, found none"),
        ("Flow Uec_1_9 flowId 1 uecSrc 1 finished at\n", "line 1: expected `finished at TIME`"),
        ("Flow Uec_1_9 flowId 1 uecSrc 1 finished at 12s\n", "line 1: finished at: expected a number"),
        (line(1, "finished", 3), r"ops-SEED.out: expected {4} finished flows, found {1, 4}"),
    ],
)
def test_outputs_are_checked(
    peers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], broken: str | None, message: str
) -> None:
    """One line names the file and what was expected."""
    path = peers / NAME / "ops-2.out"
    if broken is None:
        path.unlink()
    else:
        path.write_text(broken)
    assert main(["paper", NAME, "--out", str(tmp_path / "out"), "--beside", str(peers)]) == 2
    (error,) = (each for each in capsys.readouterr().err.splitlines() if each.startswith("tailrace: "))
    assert message in error
    assert "ops-" in error


def test_moments_are_counted_from_the_start_of_the_flow(tmp_path: Path) -> None:
    """uet-htsim prints the simulated time, REPS's artifact the time since the start."""
    path = tmp_path / "it.out"
    path.write_text(line(1, "starting", 5) + line(2, "finished", 9) + line(1, "finished", 7))
    assert sorted([flow.fct_ns for flow in read_output(path, "htsim-moment").flows]) == [2000, 9000]
    assert sorted([flow.fct_ns for flow in read_output(path, "htsim-duration").flows]) == [7000, 9000]
    assert read_output(path, "htsim-moment").cpu_s is None
    assert metrics_of(read_output(path, "htsim-moment").flows)["runtime"] == 9000  # the last flow's end
    assert "runtime" not in metrics_of(read_output(path, "htsim-duration").flows)


def test_a_line_is_read_after_text_without_a_newline(tmp_path: Path) -> None:
    """As REPS's artifact prints it for each packet that a dead link of its Fig. 6 loses."""
    path = tmp_path / "it.out"
    path.write_text("Dropping a PKT" * 3 + line(1, "finished", 7) + line(2, "finished", 9))
    assert sorted([flow.fct_ns for flow in read_output(path, "htsim-duration").flows]) == [7000, 9000]


def test_fct_txt_of_ns3(tmp_path: Path) -> None:
    """Sizes and FCTs, less the time of the last ACK; other lines do not count."""
    path = tmp_path / "it.out"
    path.write_text(
        "9 5 10000 100 3931 2000000376 4431 4489\n\n8 2 10000 100 6864 2 5000 4736\nuser 2.5\nsys 1\n"
    )
    output = read_output(path, "ns3-fct", 400)
    assert [(flow.size_bytes, flow.fct_ns) for flow in output.flows] == [(3931, 4031), (6864, 4600)]
    assert output.cpu_s == 3.5
    for text, message in (
        ("9 5 1 1 x 2 4 4\n", "line 1: bytes: expected a whole number, found 'x'"),
        ("terminated\n", "line 1: expected 8 numbers"),
        ("real 1\n", "expected lines of 8 numbers, found none"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=message):
            read_output(path, "ns3-fct")


def test_rows_by_size(peers: Path, tmp_path: Path) -> None:
    """Of all flows, and of each range that has flows."""
    folder = peers / "conweave_leafspine"
    (peers / "conweave-ns3" / "config").mkdir(parents=True)
    folder.mkdir()
    nodes = "6 2 5\n4 5\n" + "".join(f"{host} {4 + host // 2} 100Gbps 1000ns 0\n" for host in range(4))
    (peers / "conweave-ns3/config/leaf_spine_128_100G_OS2.txt").write_text(nodes + "4 5 100Gbps 1000ns 0\n")
    sizes = (1000, 20_000, 900_000, 2000)
    flows = "".join(f"{src} {dst} 3 {size} 2.0\n" for (src, dst), size in zip(FLOWS, sizes, strict=True))
    (peers / "conweave-ns3/config/flow.txt").write_text(f"4\n{flows}")
    for scheme, seed in itertools.product(("ecmp", "letflow", "drill"), (1, 2, 3)):
        rows = "".join(f"0 0 1 1 {size} 0 {3850 + size * seed} 1\n" for size in sizes)
        (folder / f"{scheme}-{seed}.out").write_text(rows)
    assert main(["paper", "conweave_leafspine", "--out", str(tmp_path / "o"), "--beside", str(peers)]) == 0
    document = read_document(tmp_path / "o/small/conweave_leafspine/result.json")
    of_ecmp = {cell.case: cell.theirs["fct_mean"][0] for cell in document.cells if cell.label == "ecmp"}
    assert of_ecmp == {
        "all sizes": 461_500,
        "1 to 8,000 B": 3000,
        "8,001 to 64,000 B": 40_000,
        "above 64,000 B": 1_800_000,
    }
    assert list(document.cases) == list(of_ecmp)


def test_the_interval_of_independent_samples_has_the_ratio() -> None:
    """In 95 % of cases, for samples of unequal size and spread; a single run of the peer has no interval."""
    random, holds, draws = np.random.default_rng(1), 0, 2000
    for _ in range(draws):
        ours, theirs = random.normal(200, 4, 3), random.normal(100, 8, 5)
        estimated = independent_ratio(SeedValues(tuple(ours)), SeedValues(tuple(theirs)))
        assert estimated is not None
        assert estimated.ends is not None
        holds += estimated.ends[0] <= 2 <= estimated.ends[1]
    assert 0.93 < holds / draws < 0.98
    alone = independent_ratio(SeedValues((200.0, 202.0, 204.0)), SeedValues((101.0,)))
    assert alone is not None
    assert alone.numbers == (2.0,)
    wide = independent_ratio(SeedValues((1.0, 2.0, 30.0)), SeedValues((1.0, 2.0, 3.0)))
    assert wide is not None
    assert wide.ends is not None
    assert wide.ends[0] == 0 < wide.value, "no ratio is below 0"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('format = "htsim-duration"', 'format = "csv"', r"key 'beside\.format': expected one of"),
        ("seeds = [1, 2, 3, 4, 5]", "seeds = []", r"key 'beside\.seeds': "),
    ],
)
def test_mistakes_in_the_table_of_the_peer(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = (FOLDER / f"{NAME}.toml").read_text()
    assert old in text
    (tmp_path / "it.toml").write_text(text.replace(old, new))
    with pytest.raises(SpecError, match=message):
        read_paper_file(tmp_path / "it.toml")


def test_a_folder_without_the_peer_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["paper", NAME, "--beside", str(tmp_path)]) == 2
    assert f"--beside: {tmp_path}: expected clones of the peers of {NAME}" in capsys.readouterr().err
