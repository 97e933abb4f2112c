# SPDX-License-Identifier: Apache-2.0
"""The papers' files: all of them can be read and planned at both scales, and mistakes in one are told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tailrace.experiments.plan.experiment_file import SCALES
from tailrace.papers.claims.claims import judge
from tailrace.papers.claims.kinds import NOT_MEASURED
from tailrace.papers.grid import paper_grid
from tailrace.papers.harness import prepare
from tailrace.papers.measure.sizes import NAMES as BY_SIZE
from tailrace.papers.measure.sizes import RANGES
from tailrace.papers.model import names, read_paper, read_paper_file, select
from tailrace.results.metrics import METRICS
from tailrace.spec import SpecError
from tailrace.study.task import Task

FIGURES = {
    "beside": "reps uet",
    "collectives": "fig7 fig9",
    "common": "1_all 2_dcqcn 3_sr 4_any_order 5_faults 5_outage 6_networks 7_gap 8_steady 9_warm_up",
    "conclusions": "01_order 02_packets 03_transport 04_flowlets 05_rlb 06_slow 07_failed 08_draining 09_dragonfly "
    "10_senders",
    "flowcut": "buffers extensions fig1 fig4_5 fig7 fig8 fig9 fig10 fig11 fig12 fig13 fig14 fig15 incast table3 table4 tcp "
    "throttling",
    "hf2t": "fig1 fig6 map networks paths table1 table2",
    "htsim": "fig6_8 fig9",
    "reps": "fig1_3_6 fig5 fig8 fig12",
    "rlb": "causes fig3 fig4 fig7 fig10 fig11 fig12 fig13 fig14 fig15_16 fig17 fig18 hotspots map models options "
    "warnings",
    "spritz": "fig3 fig6 fig7 fig8 fig9 fig9_shared sensitivity table1 table3 timeouts",
}
BY_RANGE = (f"{name}_{number}" for name in BY_SIZE.values() for number in range(1, RANGES + 1))
MEASURED = (*METRICS, *BY_RANGE, "out_of_order_share_of_monitored")
GOOD = """
paper = "P"
figure = "Fig. 1"
title = "t"
source = "s"
about = "a"
metrics = ["fct_mean"]
[experiment]
target = "virtual"
topology = "leaf-spine:leaves=2,spines=2,hosts=1"
[scale.small]
values = { gap = ["1us", "2us"] }
[scale.paper]
values = { gap = ["1us"] }
[[case]]
name = "one"
small = { workload = "permutation:size=16KiB" }
[[scheme]]
label = "flowlet"
experiment = { scheme = "letflow" }
tune = { option = "gap", below = 0.2 }
[[claim]]
kind = "direction"
text = "c"
value = "fct_mean['flowlet']"
expect = "> 0"
"""

BESIDE = """
paper = "P"
figure = "Fig. 1"
title = "t"
source = "s"
about = "a"
metrics = ["slowdown_p50", "slowdown_p99"]
chart = "heatmap"
drawn = ["slowdown_p99", "slowdown_p50"]
[experiment]
target = "virtual"
topology = "leaf-spine:leaves=2,spines=2,hosts=1"
[scale.small]
values = { hf2t = ["97", "99"], max_thr = ["40"] }
[scale.paper]
values = { hf2t = ["99"], max_thr = ["40"] }
[[case]]
name = "one"
small = { workload = "permutation:size=16KiB" }
options = { gap = "50us", min_thr = "5" }
[[scheme]]
label = "alone"
experiment = { scheme = "letflow" }
takes = ["gap"]
[grid]
scheme = "letflow"
options = ["hf2t", "max_thr"]
titles = { hf2t = "percentile" }
"""


@pytest.mark.parametrize("paper", FIGURES)
def test_all_of_a_paper_is_there(paper: str) -> None:
    """In the order of the paper, and what it asks for."""
    figures = [f"{paper}_{figure}" for figure in FIGURES[paper].split()]
    assert [name for name in names() if name.startswith(f"{paper}_")] == figures == select(paper)


def test_a_file_and_a_figure_can_be_named() -> None:
    assert select("flowcut_fig7") == ["flowcut_fig7"]
    assert select("fig7")[:2] == ["collectives_fig7", "flowcut_fig7"]
    assert select("flowcut_fig8,flowcut_fig7,fig7") == [
        *select("fig7")[:2],
        "flowcut_fig8",
        *select("fig7")[2:],
    ]
    with pytest.raises(
        SpecError, match=r"'fig99' is not known; expected one of \d+ such as list, all, beside"
    ):
        select("fig99")


@pytest.mark.parametrize("scale", SCALES)
def test_all_files_can_be_planned(scale: str) -> None:
    """Every word in them is understood, and every metric and claim."""
    planned = prepare(names(), scale)
    for name, (file, grid) in zip(names(), planned, strict=True):
        assert (file.kind == "runs" and not file.beside) == bool(grid.runs), name
        assert file.claim or file.beside, name


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("paper", ["hf2t", "rlb"])
def test_every_claim_is_a_number(paper: str, scale: str) -> None:
    """Where every run has every metric, no claim lacks one, names a label that is not there, or is a list."""
    for name, (file, grid) in zip(select(paper), prepare(select(paper), scale), strict=True):
        values = {
            (str(settings["case"]), str(settings["scheme"])): dict.fromkeys(MEASURED, 1.0)
            for settings, _ in grid.runs
        }
        cases = [case.name for case in file.cases(scale)]
        for verdict in judge(file.claims(scale), values, cases, scale):
            assert verdict.verdict != NOT_MEASURED, (name, verdict.text)


def test_paper_scale_is_that_of_the_paper() -> None:
    """1024 hosts, 200 Gb/s, 1 us, 2 KiB; another number of hosts only where the file says that it is reduced."""
    for name in select("flowcut"):
        file = read_paper(name)
        for task in paper_grid(file, "paper").tasks if file.kind == "runs" else ():
            experiment = task.experiment
            assert experiment.mtu_bytes == 2048, name
            assert "rate=200Gbps,delay=1us" in experiment.topology, name
            whole = re.search(r"fat-tree:k=16|dragonfly:p=16,a=16,h=3,groups=4", experiment.topology)
            assert whole or any("hosts" in text for text in file.scale.paper.reductions), (name, task.label)


def test_a_search_runs_every_value(tmp_path: Path) -> None:
    """One task a value and seed."""
    path = tmp_path / "it.toml"
    path.write_text(
        GOOD.replace('values = { gap = ["1us", "2us"] }', 'values = { gap = ["1us", "2us"] }\nseeds = [4, 5]')
    )
    grid = paper_grid(read_paper_file(path), "small")
    assert (grid.axes["value"], grid.axes["seed"]) == (("1us", "2us"), (4, 5))
    experiments = [(task.experiment.scheme, task.experiment.seed) for task in grid.tasks]
    assert experiments == [(f"letflow:gap={value}", seed) for value in ("1us", "2us") for seed in (4, 5)]


def test_schemes_beside_a_grid(tmp_path: Path) -> None:
    """They come first, and get only those options of a case that they take."""
    path = tmp_path / "it.toml"
    path.write_text(BESIDE)
    grid = paper_grid(read_paper_file(path), "small")
    assert grid.axes["scheme"] == ("alone", "hf2t=97,max_thr=40", "hf2t=99,max_thr=40")
    specs = [task.experiment.scheme for task in grid.tasks]
    of_grid = [f"letflow:hf2t={percentile},max_thr=40,gap=50us,min_thr=5" for percentile in (97, 99)]
    assert specs == ["letflow:gap=50us", *of_grid]


def test_a_scheme_changes_in_a_case(tmp_path: Path) -> None:
    """There it runs other words under its own name; elsewhere its own."""
    path = tmp_path / "it.toml"
    other = '[[case]]\nname = "two"\nsmall = { workload = "permutation:size=1KiB" }\n'
    changed = 'takes = ["gap"]\ncases = { two = { scheme = "letflow:seed=3" } }'
    path.write_text(BESIDE.replace("[[scheme]]", f"{other}[[scheme]]", 1).replace('takes = ["gap"]', changed))
    specs = {
        settings["case"]: run.experiment.scheme
        for settings, run in paper_grid(read_paper_file(path), "small").runs
        if settings["scheme"] == "alone" and isinstance(run, Task)
    }
    assert specs == {"one": "letflow:gap=50us", "two": "letflow:seed=3"}


def test_claims_share_a_reason(tmp_path: Path) -> None:
    """It is told of those that differ, and a claim's own explanation is not replaced."""
    path = tmp_path / "it.toml"
    path.write_text(
        f"{GOOD}reason = 'chance'\n[[claim]]\nkind = 'direction'\ntext = 'u'\nvalue = '1'\nexpect = '> 2'\nwhy = 'own'\n"
        "[[claim]]\nkind = 'direction'\ntext = 'v'\nvalue = '1'\nexpect = '> 2'\nreason = 'chance'\n"
        "[[claim]]\nkind = 'direction'\ntext = 'w'\nvalue = '3'\nexpect = '> 2'\nreason = 'chance'\n"
        "[reasons]\nchance = 'the seeds decide'\n"
    )
    claims = judge(read_paper_file(path).claims("small")[1:], {}, [""], "small")
    assert [claim.why for claim in claims] == ["own", "the seeds decide", ""]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "t"', "", "key 'title': missing"),
        ('title = "t"', 'title = "t"\nsubtitle = "u"', "key 'subtitle': unknown key; did you mean title"),
        ("below = 0.2", "below = 2", r"key 'scheme\[0\]\.tune\.below': expected a share of packets"),
        ("[[scheme]]", "[[case]]\nname = 'one'\n[[scheme]]", r"key 'case\[1\]': 'one' is given twice"),
        ("\"fct_mean['flowlet']\"", '"fct_mean"', r"key 'claim\[0\]\.value': 'fct_mean' is not supported"),
        ('expect = "> 0"', 'expect = "fast"', r"key 'claim\[0\]\.expect': expected a string such as"),
        ('expect = "> 0"', 'expect = "> 0"\nunit = "ft"', r"key 'claim\[0\]\.unit': expected one of"),
        ('kind = "direction"\n', "", r"key 'claim\[0\]\.kind': missing; expected one of number, ranking"),
        ('kind = "direction"', 'kind = "number"', r"key 'claim\[0\]\.expect': a bound needs kind direction"),
        ('expect = "> 0"', 'expect = "3"', r"key 'claim\[0\]\.expect': a single number needs kind number"),
        (
            'expect = "> 0"',
            'expect = "> 0"\ncounts = ["two"]',
            r"key 'claim\[0\]\.counts': expected one of 'one', found 'two'",
        ),
        (
            'kind = "direction"\ntext = "c"\nvalue = "fct_mean[\'flowlet\']"\nexpect = "> 0"',
            'kind = "ranking"\ntext = "c"\nvalue = "fct_mean[\'flowlet\']"\nexpect = "> 2"',
            r"key 'claim\[0\]\.expect': expected a comparison with 1 or 0",
        ),
        ("[scale.small]", "[scale.small]\nseeds = '3..1'", r"key 'scale\.small\.seeds': expected a whole"),
        (
            'expect = "> 0"',
            'expect = "> 0"\ncases = ["two"]',
            r"key 'claim\[0\]\.cases': expected one of 'one'",
        ),
        ('[scale.paper]\nvalues = { gap = ["1us"] }', "", r"key 'scale\.paper\.values\.gap': missing"),
        ('metrics = ["fct_mean"]', "metrics = []", "key 'metrics': "),
        (
            'title = "t"',
            'title = "t"\ndrawn = ["fct_p99"]',
            r"key 'drawn': expected one of 'fct_mean', found 'fct_p99'",
        ),
        (
            "[[scheme]]",
            "[grid]\nscheme = 'letflow'\noptions = ['gap']\ntitles = { cell = 'x' }\n[[scheme]]",
            r"key 'grid\.titles': expected one of 'gap', found 'cell'",
        ),
        (
            'expect = "> 0"',
            'expect = "> 0"\nreason = "chance"',
            r"key 'claim\[0\]\.reason': expected one of '', found 'chance'",
        ),
        (
            'expect = "> 0"',
            'expect = "> 0"\nreason = "a"\nwhy = "b"\n[reasons]\na = "c"',
            r"key 'claim\[0\]\.reason': why is given, too",
        ),
        (
            "[[scheme]]",
            "[[scheme]]\ncases = { two = { scheme = 'ecmp' } }",
            r"key 'scheme\[0\]\.cases': expected one of 'one', found 'two'",
        ),
        ("[experiment]", "[experiment", "not TOML"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, old: str, new: str, message: str) -> None:
    """One line: the file, the key, what is wrong."""
    path = tmp_path / "it.toml"
    assert old in GOOD
    path.write_text(GOOD)
    read_paper_file(path)
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(SpecError, match=message) as caught:
        read_paper_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
