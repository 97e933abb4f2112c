# SPDX-License-Identifier: Apache-2.0
"""A figure or table of a paper as a TOML file: what runs, what is measured, what the paper claims.

    paper = "Flowcut"                       # and figure, title, source, about, assumptions
    metrics = ["fct_p99", "out_of_order_share"]   # columns of the table, panels of the figure
    base = "ecmp"                           # the scheme over which others are shown, in pairs of one seed

    [experiment]                            # keys of experiment files, for every run
    [scale.small]                           # experiment = {...}, seeds, reductions, values = {gap = [...]}
    [[case]]                                # name, title, experiment, small, paper, options: one traffic
    [[scheme]]                              # label, experiment, small, paper, cases, takes, over, tune
    [grid]                                  # a scheme for every combination of `values`; others are beside it
    [[claim]]                               # kind, text, value, expect, paper, why or reason
    [reasons]                               # explanations that several claims share, by name

In files of other kinds nothing is simulated: `memory` and `occupancy` hold parameters of Flowcut's memory
model (memory.py), `endpoints` and `paths` topologies whose paths are counted or listed (endpoints.py), in
[[panel]]s.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from tailrace.experiments.plan.experiment import Settings
from tailrace.experiments.plan.experiment_file import SCALES
from tailrace.experiments.plan.seeds import EXPECTED as SEEDS
from tailrace.experiments.plan.seeds import parse_seeds
from tailrace.papers.claims.expect import Expectation, parse_expectation
from tailrace.papers.claims.expression import check_expression, metrics_of
from tailrace.papers.claims.kinds import KINDS as CLAIM_KINDS
from tailrace.papers.claims.kinds import NUMBER, RANKING
from tailrace.papers.tails import tails
from tailrace.results.units import UNITS
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.schema import KeyProblemError, convert, in_file, read_toml
from tailrace.spec.suggest import unknown

FOLDER = Path(__file__).resolve().parent / "files"
"""Where the papers' files lie."""

KINDS = ("runs", "memory", "occupancy", "endpoints", "paths")
CHARTS = ("bars", "ratios", "heatmap", "sizes", "gaps", "memory", "endpoints", "none")
LINES = ("sizes", "gaps")
"""Charts that show runs as lines (line_charts.py); a search would need lines of its own."""


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One size: what it changes, the seeds over which metrics are averaged, what it leaves out and why."""

    experiment: Settings = Settings()
    seeds: Annotated[int | str | list[int], Meta(description=SEEDS)] = 1
    reductions: list[str] = []
    values: dict[str, list[str]] = {}

    @property
    def each_seed(self) -> tuple[int, ...]:
        """The seeds.

        Raises:
            SpecError: they are none.
        """
        return parse_seeds(self.seeds)


class PaperScales(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The sizes."""

    small: Scale = Scale()
    paper: Scale = Scale()

    def of(self, name: str) -> Scale:
        """The size with a name of SCALES."""
        return self.small if name == "small" else self.paper


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A traffic in a network; `small` and `paper` change `experiment` at one size.

    only: the size at which the case is there; empty: at both
    options: what the words of every scheme get in this case, by option
    """

    name: str
    title: str = ""
    only: str = ""
    experiment: Settings = Settings()
    small: Settings = Settings()
    paper: Settings = Settings()
    options: dict[str, str] = {}

    def of(self, scale: str) -> Settings:
        """What this case changes at one size only."""
        return self.small if scale == "small" else self.paper


class Tune(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Search of a scheme's option: the value with the best mean FCT and less out of order than `below`."""

    option: str
    below: Annotated[float, Meta(description="a share of packets over 0 and up to 1", gt=0, le=1)] | None = (
        None
    )


class Scheme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scheme as it is compared; `experiment` holds its words and what else it needs.

    `small` and `paper` change it at one size, `cases` in single cases, by their names. `takes` are the
    options of cases that its words can have. `over` is the scheme over which it is shown, where that is
    not the file's `base`.
    """

    label: str
    experiment: Settings
    tune: Tune | None = None
    small: Settings = Settings()
    paper: Settings = Settings()
    cases: dict[str, Settings] = {}
    takes: list[str] | None = None
    over: str = ""

    def of(self, scale: str) -> Settings:
        """What this scheme changes at one size only."""
        return self.small if scale == "small" else self.paper


class OptionGrid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scheme at every combination of the values of these options; the first is the x axis.

    titles: what the options are called in a figure
    """

    scheme: str
    options: Annotated[list[str], Meta(min_length=1, max_length=2)]
    titles: dict[str, str] = {}


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Memory against flows a host, a line for each combination of the other parameters; or `topologies`."""

    name: str
    title: str = ""
    hosts: tuple[int, ...] = (1024,)
    rate: tuple[str, ...] = ("200Gbps",)
    rtt: tuple[str, ...] = ("5us",)
    flows: tuple[int, ...] = (10_000,)
    algorithms: tuple[str, ...] = ("full", "ingress", "nic")
    topologies: tuple[str, ...] = ()


class Claim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement of the paper that can be checked.

    kind: what it tests, and so how it is graded: kinds.py
    value: an expression over metrics (expression.py); without a case in it, it is checked for every case
    expect: `<= 0.5`, `0.9..1.1`, `11.3`, of the value in its unit: see expect.py; of a ranking a comparison
    with 1 or 0, where both are equal
    number: what several claims that test one number of the paper call it, of which the worst counts
    counts: the cases in which it is among the headlines; missing: all, empty: none, for another claim
    counts or the setting is ours
    paper: the paper's number or words, shown beside ours
    rerun: what its authors found when they ran it again in public, by case, shown in a third column
    unit: in which both are shown
    cases: names of the cases that are meant; none: all only: the size at which it can be checked;
    empty: at both why: what explains a difference, at either size or at one reason: the name of an
    explanation in the file's `reasons`, for one that several claims share
    """

    kind: Annotated[str, Meta(description=f"one of {', '.join(CLAIM_KINDS)}")]
    text: str
    value: str
    expect: str
    number: str = ""
    counts: list[str] | None = None
    paper: str = ""
    rerun: dict[str, str] = {}
    unit: str = ""
    cases: list[str] = []
    only: str = ""
    why: str = ""
    why_small: str = ""
    why_paper: str = ""
    reason: str = ""

    def explanation(self, scale: str) -> str:
        """What explains a difference at one size."""
        return (self.why_small if scale == "small" else self.why_paper) or self.why

    @property
    def expectation(self) -> Expectation:
        """What the value should be."""
        return parse_expectation(self.expect)


class PaperFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file.

    drawn: metrics that bars, ratios and heat maps show; empty: all of them, or the first one
    base: the scheme over which the drawn metrics of the others are shown, too, in pairs of one seed
    """

    paper: str
    figure: str
    title: str
    source: str
    about: str
    metrics: Annotated[list[str], Meta(min_length=1)]
    kind: Annotated[str, Meta(description=f"one of {', '.join(KINDS)}")] = "runs"
    chart: Annotated[str, Meta(description=f"one of {', '.join(CHARTS)}")] = "bars"
    drawn: list[str] = []
    base: str = ""
    assumptions: list[str] = []
    experiment: Settings = Settings()
    scale: PaperScales = PaperScales()
    case: list[Case] = []
    scheme: list[Scheme] = []
    grid: OptionGrid | None = None
    panel: list[Panel] = []
    reasons: dict[str, str] = {}
    claim: list[Claim] = []

    @property
    def bases(self) -> dict[str, str]:
        """What each scheme is shown over, by label; none of those that are over nothing."""
        bases = {scheme.label: scheme.over or self.base for scheme in self.scheme}
        return {label: base for label, base in bases.items() if base}

    def cases(self, scale: str) -> list[Case]:
        """The cases that are there at one size."""
        return [case for case in self.case if case.only in ("", scale)]

    @property
    def needs_flows(self) -> bool:
        """Whether it takes single flows, which runs themselves have, and no stored line of one."""
        return self.chart == "sizes"

    def needs(self, scale: str) -> list[str]:
        """The metrics that it shows or makes claims about, and those that may stand for them."""
        claimed = (name for claim in self.claims(scale) for name in metrics_of(claim.value))
        return list(dict.fromkeys(each for name in (*self.metrics, *claimed) for each in tails(name)))

    def claims(self, scale: str) -> list[Claim]:
        """The claims that are about something there at one size, each with the cases that are, and why."""
        names = {case.name for case in self.cases(scale)} | {panel.name for panel in self.panel}
        claims = []
        for claim in self.claim:
            cases = [name for name in claim.cases if name in names]
            if claim.only in ("", scale) and (cases or not claim.cases):
                why = claim.why or self.reasons.get(claim.reason, "")
                claims.append(msgspec.structs.replace(claim, cases=cases, why=why))
        return claims


def names() -> list[str]:
    """The names of all files: paper and figure, such as flowcut_fig8, in their natural order."""
    return sorted((path.stem for path in FOLDER.glob("*.toml")), key=_natural)


def _natural(name: str) -> tuple[str, str, int, str]:
    """Sorts fig7 before fig10, and figures before tables."""
    paper, _, rest = name.partition("_")
    kind = rest.rstrip("0123456789_")
    number = rest[len(kind) :]
    return paper, kind, int(number.partition("_")[0] or 0), number


def paper_of(name: str) -> str:
    """What the names of a paper's figures, and its page, begin with: flowcut."""
    return name.partition("_")[0]


def select(wanted: str) -> list[str]:
    """The files that words mean, with commas between: `all`, a paper, a file, or a figure such as fig8.

    In the order of the papers, each file once.

    Raises:
        SpecError: a word means none.
    """
    chosen = set[str]()
    for item in wanted.split(","):
        selected = {name for name in names() if item in ("all", name, paper_of(name), name.partition("_")[2])}
        if not selected:
            papers = dict.fromkeys(map(paper_of, names()))
            raise SpecError(f"paper {unknown(item, ('list', 'all', *papers, *names()))}")
        chosen |= selected
    return [name for name in names() if name in chosen]


def read_paper(name: str) -> PaperFile:
    """The file of a figure or table, checked.

    Raises:
        FileError: it is not as it should be.
    """
    return read_paper_file(FOLDER / f"{name}.toml")


def read_paper_file(path: Path) -> PaperFile:
    """A figure's or table's file, checked.

    Raises:
        FileError: it cannot be read, or a key or value is not what was expected.
    """
    values = read_toml(path)
    try:
        file = convert(values, PaperFile)
        _check(file)
    except KeyProblemError as error:
        raise in_file(path, error) from error
    except SpecError as error:
        raise FileError(path, "", str(error)) from error
    return file


def with_seeds(file: PaperFile, scale: str, seeds: Sequence[int]) -> PaperFile:
    """The file with other seeds at one of its sizes."""
    changed = msgspec.structs.replace(file.scale.of(scale), seeds=list(seeds))
    return msgspec.structs.replace(file, scale=msgspec.structs.replace(file.scale, **{scale: changed}))


def _check(file: PaperFile) -> None:
    """What the types cannot say."""
    for scale in SCALES:
        try:
            _ = file.scale.of(scale).each_seed
        except SpecError as error:
            raise KeyProblemError(f"scale.{scale}.seeds", str(error)) from error
    _one_of("kind", file.kind, KINDS)
    _one_of("chart", file.chart, CHARTS)
    _unique("case", [case.name for case in file.case])
    for number, case in enumerate(file.case):
        _one_of(f"case[{number}].only", case.only, ("", *SCALES))
    _unique("scheme", [scheme.label for scheme in file.scheme])
    for number, scheme in enumerate(file.scheme):
        for name in scheme.cases:
            _one_of(f"scheme[{number}].cases", name, [case.name for case in file.case])
    _unique("panel", [panel.name for panel in file.panel])
    if file.kind == "runs" and not (file.grid or file.scheme):
        raise KeyProblemError("scheme", "missing; expected schemes or a grid")
    for name in file.drawn:
        _one_of("drawn", name, file.metrics)
    _check_bases(file)
    if file.grid:
        for option in file.grid.titles:
            _one_of("grid.titles", option, file.grid.options)
    if file.chart in LINES and any(scheme.tune for scheme in file.scheme):
        raise KeyProblemError("chart", f"{file.chart} shows no search")
    _check_values(file)
    known = {case.name for case in file.case} | {panel.name for panel in file.panel}
    for number, claim in enumerate(file.claim):
        _check_claim(f"claim[{number}]", claim, known)
        _one_of(f"claim[{number}].reason", claim.reason, ("", *file.reasons))
        if claim.reason and claim.why:
            raise KeyProblemError(f"claim[{number}].reason", "there is a why, too; expected one of them")


def _check_bases(file: PaperFile) -> None:
    """Whether there is what ratios are to."""
    labels = [scheme.label for scheme in file.scheme]
    if file.base:
        _one_of("base", file.base, labels)
    for number, scheme in enumerate(file.scheme):
        _one_of(f"scheme[{number}].over", scheme.over, ("", *labels))
    if file.chart == "ratios" and not any((file.base, *(scheme.over for scheme in file.scheme))):
        raise KeyProblemError("base", "missing; expected the scheme to which ratios are")


def _check_values(file: PaperFile) -> None:
    """Whether there are values of every option that is searched or of a grid, at each size."""
    options = list(file.grid.options) if file.grid else []
    options += [scheme.tune.option for scheme in file.scheme if scheme.tune]
    for scale in SCALES:
        for option in options:
            if not file.scale.of(scale).values.get(option):
                raise KeyProblemError(f"scale.{scale}.values.{option}", "missing; expected a list of values")


def _check_claim(key: str, claim: Claim, cases: set[str]) -> None:
    _one_of(f"{key}.kind", claim.kind, CLAIM_KINDS)
    _one_of(f"{key}.unit", claim.unit, tuple(UNITS))
    _one_of(f"{key}.only", claim.only, ("", *SCALES))
    for name in claim.cases:
        _one_of(f"{key}.cases", name, tuple(sorted(cases)))
    try:
        check_expression(claim.value)
    except SpecError as error:
        raise KeyProblemError(f"{key}.value", str(error)) from error
    for name in claim.rerun:
        _one_of(f"{key}.rerun", name, tuple(claim.cases or sorted(cases)))
    for name in claim.counts or ():
        _one_of(f"{key}.counts", name, tuple(claim.cases or sorted(cases)))
    try:
        expected = parse_expectation(claim.expect)
    except SpecError as error:
        raise KeyProblemError(f"{key}.expect", str(error)) from error
    if claim.kind == RANKING and expected.even is None:
        raise KeyProblemError(f"{key}.expect", "expected a comparison with 1 or 0, of a ranking")
    if expected.sense and claim.kind == NUMBER:
        raise KeyProblemError(f"{key}.expect", "a bound is of a direction; expected a number or its range")
    if expected.is_number and claim.kind != NUMBER:
        raise KeyProblemError(f"{key}.expect", "one number is of claims whose kind is number")


def _one_of(key: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise KeyProblemError(key, f"expected one of {', '.join(map(repr, choices))}, found {value!r}")


def _unique(key: str, listed: Sequence[str]) -> None:
    for number, name in enumerate(listed):
        if name in listed[:number]:
            raise KeyProblemError(f"{key}[{number}]", f"{name!r} is there twice")
