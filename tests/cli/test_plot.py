# SPDX-License-Identifier: Apache-2.0
"""`tailrace plot`, `tailrace.figure`: every kind of figure, as a file that can be printed."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace
from tailrace.cli.figures import _label
from tailrace.cli.main import main
from tailrace.report.figures.names import written
from tailrace.report.figures.plot import Look, parse_inches
from tailrace.report.kinds import KINDS
from tailrace.spec import SpecError

NETWORK = ("--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=2")
WORKLOAD = ("--workload", "random:flows=12,cdf=websearch,most=200KB,cross=on")
WATCHED = (*NETWORK, *WORKLOAD, "--sample", "1us", "--follow", "1")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A run, a comparison with three seeds, and a sweep."""
    root = tmp_path_factory.mktemp("results")
    folders = {name: root / name for name in ("run", "comparison", "sweep")}
    words = ["--out", str(folders["run"])]
    assert main(["run", "--scheme", "spray", *WATCHED, *words]) == 0
    words = ["--seed", "1..3", "--out", str(folders["comparison"])]
    assert main(["compare", "--scheme", "ecmp,spray", *WATCHED, *words]) == 0
    words = ["--scheme", "ecmp,flowcut:variant=nic", "--set", "workload.flows=4,40,400"]
    assert main(["sweep", *words, *NETWORK, *WORKLOAD, "--out", str(folders["sweep"])]) == 0
    return folders


def drawn(folder: Path, kind: str, *words: str) -> Path:
    """The file of a figure."""
    assert main(["plot", str(folder), kind, *words]) == 0
    ending = next((word for word in words if word in ("svg", "png")), "pdf")
    return folder / f"{kind}.{ending}"


def failed(capsys: pytest.CaptureFixture[str], folder: Path, *words: str) -> str:
    """The only line of an error, after which the folder has the files that it had before."""
    before = sorted(folder.iterdir())
    capsys.readouterr()
    assert main(["plot", str(folder), *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sorted(folder.iterdir()) == before
    return line.removeprefix("tailrace: ")


def texts(svg: Path) -> str:
    """The text of the <text> elements of an SVG."""
    elements = ElementTree.parse(svg).iter("{http://www.w3.org/2000/svg}text")
    return "\n".join("".join(element.itertext()) for element in elements)


def pdf_text(path: Path) -> bytes:
    """A PDF with its compressed streams expanded."""
    data = path.read_bytes()
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", data, re.DOTALL)
    expanded = []
    for stream in streams:
        try:
            expanded.append(zlib.decompress(stream))
        except zlib.error:
            expanded.append(stream)
    return data + b"".join(expanded)


WHERE = {
    **dict.fromkeys(("ratios",), "comparison"),
    "sensitivity": "sweep",
    **dict.fromkeys(("longest-queues", "paths", "flow-throughput"), "run"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_fonts_that_publishers_accept(kind: str, folders: dict[str, Path]) -> None:
    """The page is as wide as was asked; fonts are TrueType; equal results give equal files."""
    folder = folders[WHERE.get(kind, "comparison")]
    words = ("--format", "pdf", "--width", "3.3in", "--height", "84mm")
    content = drawn(folder, kind, *words).read_bytes()
    pdf = pdf_text(folder / f"{kind}.pdf")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", pdf)
    assert box is not None
    assert [float(each) for each in box.groups()] == pytest.approx([3.3 * 72, 84 / 25.4 * 72])
    assert drawn(folder, kind, *words).read_bytes() == content


@pytest.mark.skipif(shutil.which("pdffonts") is None, reason="poppler-utils is not installed")
def test_fonts_as_poppler_lists_them(folders: dict[str, Path]) -> None:
    command = ["pdffonts", str(drawn(folders["comparison"], "cdf"))]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert "TrueType" in listed
    assert "Type 3" not in listed


def test_text_is_text_and_schemes_have_their_names(folders: dict[str, Path]) -> None:
    """ECMP, and the name that the user gives, also one that would be markup, or a formula."""
    names = ("--labels", "ecmp=A<b>&$x$", "--labels", "spray=RLB*")
    for format_ in ("svg", "png"):
        drawn(folders["comparison"], "cdf", "--format", format_, *names)
    shown = texts(folders["comparison"] / "cdf.svg")
    assert "A<b>&$x$" in shown
    assert "RLB*" in shown
    shown = texts(drawn(folders["sweep"], "sensitivity", "--format", "svg", "--labels", "ecmp=Hash"))
    assert all(text in shown for text in ("Hash", "Flowcut nic", "workload.flows", "no difference"))


def test_names_as_one_writes_them() -> None:
    labels = ("ecmp", "letflow:hf2t=99", "rlb:variant=drill", "mp-rdma", "ecmp+hf2t", "mine", "ecmp seed=3")
    assert [written(label) for label in labels] == [
        *("ECMP", "LetFlow HF²T=99", "RLB DRILL", "MP-RDMA", "ECMP+HF²T", "mine", "ECMP seed=3")
    ]


@given(st.text("ab:,=", min_size=1), st.text("AB", min_size=1))
def test_labels_may_be_specs(label: str, name: str) -> None:
    """Commas and equals signs in a label are no separators."""
    assert _label(f"{label}={name}") == (label, name)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1), st.floats(1e-3, 1e3))
def test_an_axis_is_logarithmic_where_values_span_a_decade_and_a_half(
    values: list[float], factor: float
) -> None:
    """Whatever the unit; not with a 0; and as the user says."""
    spans = max(values) > min(values) * 10**1.5
    assert Look().is_log(values) == spans
    assert not Look().is_log([*values, 0.0])
    assert Look(log=True).is_log([*values, 0.0])
    assert not Look(log=False).is_log(values)


def test_axes_of_figures(folders: dict[str, Path]) -> None:
    """Completion times span decades here; the axis of a sweep is what was swept, with a line at 1."""
    results = tailrace.open_results(folders["sweep"])
    assert {axis.get_xscale() for axis in tailrace.figure(results, "cdf", log=True).axes} == {"log"}
    assert {axis.get_xscale() for axis in tailrace.figure(results, "cdf", log=False).axes} == {"linear"}
    slowdowns, ratios = tailrace.figure(results, "sensitivity").axes
    assert slowdowns.get_xscale() == "log"
    swept = [np.asarray(line.get_xdata()).tolist() for line in slowdowns.get_lines()]
    assert swept == [[4.0, 40.0, 400.0]] * 2
    expected = [
        row.ratios["fct_mean"].value
        for row in tailrace.Results(results.axes, results.runs, first="ecmp").rows
        if row.settings["scheme"] != "ecmp"
    ]
    # the line of ECMP is that at 1
    (_, line, at_one) = ratios.get_lines()
    assert np.asarray(line.get_ydata()).tolist() == pytest.approx(expected)
    assert set(np.asarray(at_one.get_ydata()).tolist()) == {1.0}


def test_seeds_are_intervals(folders: dict[str, Path]) -> None:
    """Bands where a value is a line, bars with their ends in ratios, as the table has them."""
    results = tailrace.open_results(folders["comparison"])
    for kind in ("cdf", "throughput"):
        assert all(len(axis.collections) == 2 for axis in tailrace.figure(results, kind).axes), kind
    (row,) = (row for row in results.rows if row.settings["scheme"] == "spray")
    ends = row.ratios["fct_mean"].ends
    assert ends is not None
    lines = [
        np.asarray(line.get_xdata()).tolist()
        for line in tailrace.figure(results, "ratios").axes[0].get_lines()
    ]
    assert list(ends) in lines


def test_without_a_kind_those_are_listed_that_can_be_drawn(
    folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["plot", str(folders["sweep"])]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {"cdf", "sensitivity", "ratios"} <= set(listed)
    assert not {"queues", "paths"} & set(listed)
    assert failed(capsys, folders["sweep"], "queues").endswith(
        f"no data; it needs samples: --sample; expected {', '.join(listed)}"
    )
    assert failed(capsys, folders["sweep"], "pie").endswith(f"expected {', '.join(listed)}")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("cdf", "--width", "3.3"), "'3.3': expected a length of 1 to 50 inches"),
        (("cdf", "--width", "1e9in"), "expected a length"),
        (("cdf", "--height", "2mm"), "expected a length"),
        (("cdf", "--labels", "nobody=X"), "labels: 'nobody' is not known; expected ecmp, spray"),
        (("cdf", "--labels", "ecmp"), "expected LABEL=NAME, found 'ecmp'"),
        (("cdf", "--labels", "ecmp=X", "--labels", "spray=X"), "two schemes would have the name 'X'"),
        (("cdf", "--labels", "ecmp="), "expected at most 60 printable characters"),
        (("cdf", "--labels", "ecmp=a\nb"), "expected at most 60 printable characters"),
        (("cdf", "--out", "figure.exe"), "expected a file with the suffix .pdf, .svg or .png"),
        (("cdf", "--out", "no/such/folder.pdf"), "no/such/folder.pdf: No such file or directory"),
        (("paths",), "shows one run; expected a folder of one, such as clean/ecmp/seed=1"),
    ],
)
def test_bad_input_is_a_line(
    words: tuple[str, ...], problem: str, folders: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert problem in failed(capsys, folders["comparison"], *words)


def test_a_link_in_the_folder_is_replaced(folders: dict[str, Path], tmp_path: Path) -> None:
    """Who made the folder may not choose which file is overwritten."""
    kept = tmp_path / "kept"
    kept.write_text("kept")
    (folders["run"] / "cdf.pdf").unlink(missing_ok=True)
    (folders["run"] / "cdf.pdf").symlink_to(kept)
    assert drawn(folders["run"], "cdf").read_bytes().startswith(b"%PDF")
    assert kept.read_text() == "kept"


@pytest.mark.parametrize(("text", "inches"), [("3.3in", 3.3), ("25.4mm", 1.0), ("8.4cm", 8.4 / 2.54)])
def test_lengths(text: str, inches: float) -> None:
    assert parse_inches(text) == pytest.approx(inches)


def test_python_refuses_what_the_command_refuses(folders: dict[str, Path], tmp_path: Path) -> None:
    """And draws the same figure, also if the process has configured matplotlib."""
    result = tailrace.open_result(folders["run"])
    with pytest.raises(SpecError, match="no data; it needs several schemes"):
        tailrace.figure(result, "ratios")
    with pytest.raises(SpecError, match="'nobody' is not known"):
        tailrace.figure(result, labels={"nobody": "X"})
    tailrace.figure(result, "cdf", width="84mm").savefig(tmp_path / "cdf.pdf")
    assert b"/Type3" not in pdf_text(tmp_path / "cdf.pdf")
