# SPDX-License-Identifier: Apache-2.0
"""The TOML file of a paper's figure or table: its experiments, its metrics, and the paper's claims.

    paper = "Flowcut"                       # and figure, title, source, about, assumptions
    metrics = ["fct_p99", "out_of_order_share"]   # columns of the table, panels of the figure
    base = "ecmp"                           # the scheme to which ratios are shown, paired by seed
    rows = {sort = true, colour = "transport"}   # of a chart of ratios, see Rows

    [experiment]                            # keys of experiment files, for every run
    [scale.small]                           # experiment = {...}, seeds, reductions, values = {gap = [...]}
    [[case]]                                # name, title, experiment, small, paper, options
    [[scheme]]                              # label, experiment, small, paper, cases, takes, over, tune
    [grid]                                  # a scheme at every combination of `values`, besides [[scheme]]s
    [[claim]]                               # kind, text, value, expect, paper, why or reason
    [reasons]                               # explanations that several claims share, by name

Files of a `kind` other than `runs` do not simulate. Their [[panel]]s contain parameters of Flowcut's memory
model (`memory` and `occupancy`, see memory.py), or topologies whose paths are counted or listed (`endpoints`
and `paths`, see endpoints.py).

A file with the table [beside] compares with runs of another program, the peer (beside.py).
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
from tailrace.papers.claims.expression import checked, metrics_of
from tailrace.papers.claims.kinds import KINDS as CLAIM_KINDS
from tailrace.papers.claims.kinds import NUMBER, RANKING
from tailrace.papers.outputs import FORMATS
from tailrace.papers.tails import tails
from tailrace.results.units import UNITS
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.schema import KeyProblemError, convert, in_file, read_toml
from tailrace.spec.suggest import unknown

FOLDER = Path(__file__).resolve().parent / "files"
"""The folder of the papers' files."""

KINDS = ("runs", "memory", "occupancy", "endpoints", "paths")
CHARTS = ("bars", "ratios", "heatmap", "sizes", "gaps", "warm-up", "memory", "endpoints", "none")
LINES = ("sizes", "gaps", "warm-up")
"""Charts that show runs as lines (line_charts.py); they cannot be combined with a search (Tune)."""


class Scale(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scale of a figure: `small`, or `paper` with the paper's sizes.

    experiment: settings for this scale only
    seeds: the seeds over which metrics are averaged
    reductions: what this scale omits compared with the paper, and why
    values: the values of searched options and of the grid's options
    """

    experiment: Settings = Settings()
    seeds: Annotated[int | str | list[int], Meta(description=SEEDS)] = 1
    reductions: list[str] = []
    values: dict[str, list[str]] = {}

    @property
    def each_seed(self) -> tuple[int, ...]:
        """The seeds.

        Raises:
            SpecError: the seeds are invalid.
        """
        return parse_seeds(self.seeds)


class PaperScales(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The scales of a figure."""

    small: Scale = Scale()
    paper: Scale = Scale()

    def of(self, name: str) -> Scale:
        """The scale with a name of SCALES."""
        return self.small if name == "small" else self.paper


class Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A case of a figure, such as one workload in one network.

    only: the only scale with this case; empty: both scales
    small, paper: settings that this case changes at that scale only
    options: by name, options that are added to every scheme's spec in this case
    theirs: the peer's arguments for this case
    """

    name: str
    title: str = ""
    only: str = ""
    experiment: Settings = Settings()
    small: Settings = Settings()
    paper: Settings = Settings()
    options: dict[str, str] = {}
    theirs: str = ""

    def of(self, scale: str) -> Settings:
        """The settings that this case changes at one scale only."""
        return self.small if scale == "small" else self.paper


class Tune(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The search for an option's value with the least mean FCT.

    below: limit of the share of packets out of order; None: no limit
    """

    option: str
    below: Annotated[float, Meta(description="a share of packets over 0 and up to 1", gt=0, le=1)] | None = (
        None
    )


class Scheme(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A scheme of a figure.

    experiment: the scheme's spec, and other settings that the scheme needs
    small, paper: settings that the scheme changes at that scale only
    cases: by name of a case, settings that the scheme changes in this case only
    takes: the options of cases that are added to the scheme's spec; None: all
    over: the scheme to which this scheme's ratios are relative; empty: the file's `base`
    theirs: the peer's arguments for this scheme
    """

    label: str
    experiment: Settings
    tune: Tune | None = None
    small: Settings = Settings()
    paper: Settings = Settings()
    cases: dict[str, Settings] = {}
    takes: list[str] | None = None
    over: str = ""
    theirs: str = ""

    def of(self, scale: str) -> Settings:
        """The settings that this scheme changes at one scale only."""
        return self.small if scale == "small" else self.paper


class Beside(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The peer beside which a figure's runs are put.

    clone: the address of its repository
    commit: the commit that was built, by the command `build` in the folder of all peers
    command: its command line there, without the arguments of case and scheme; bash sets $seed
    format: of its output, one of outputs.FORMATS
    seeds: the peer's seeds; the same seeds here make other random choices
    causes: by scheme, or by case and scheme, why a ratio is not from 0.9 to 1.1
    ends: sizes in bytes that divide the flows into ranges, each with a row of its own; for formats with sizes
    ack_ns: the time of the last ACK in an idle network, taken off the peer's FCTs, which end with it
    """

    peer: str
    clone: str
    commit: str
    build: str
    command: str
    format: str
    seeds: Annotated[list[int], Meta(min_length=1, description="a list of whole numbers")]
    causes: dict[str, str] = {}
    ends: list[int] = []
    ack_ns: int = 0


class OptionGrid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One scheme at every combination of the values of these options; the first option is the x axis.

    titles: the titles of the options in a figure
    """

    scheme: str
    options: Annotated[list[str], Meta(min_length=1, max_length=2)]
    titles: dict[str, str] = {}


class Panel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A panel of a figure without runs.

    It shows memory against flows per host, with a line for each combination of the other parameters; or the
    paths of `topologies`.
    """

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

    kind: the kind of claim, which determines how the claim is graded: kinds.py
    value: an expression over metrics (expression.py); if it contains no case, it is checked for every case
    expect: the expected value in `unit`: `<= 0.5`, `0.9..1.1`, `11.3`, see expect.py; for a ranking a
        comparison with 1 or 0, at which two schemes are equal
    number: a name shared by several claims that test one number of the paper; the worst verdict counts
    counts: the cases in which the claim counts in headlines; missing: all; empty: none, since another claim
        counts, or the setting is not the paper's
    paper: the paper's number or words, shown next to the measured value
    rerun: by case, the value of a re-run that the paper's authors published, shown in a third column
    unit: the unit in which expected and measured values are shown
    cases: names of the cases to which the claim applies; empty: all
    only: the only scale at which the claim can be checked; empty: both scales
    why: the explanation of a difference; `why_small`, `why_paper`: the explanation at one scale
    reason: the name of an explanation in the file's `reasons`, which several claims can share
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
        """The explanation of a difference at one scale."""
        return (self.why_small if scale == "small" else self.why_paper) or self.why

    @property
    def expectation(self) -> Expectation:
        """The parsed expectation."""
        return parse_expectation(self.expect)


class Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rows of a chart of ratios.

    sort: whether rows are sorted by the first ratio that the figure shows
    colour: what the colour of a row shows: `transport`; empty: the case
    mark: a metric; rows in which it is 0 have a mark
    """

    sort: bool = False
    colour: str = ""
    mark: str = ""


class PaperFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file of a figure or table.

    drawn: metrics that bars, ratios and heat maps show; empty: all metrics, or in heat maps the first metric
    base: the scheme to which the ratios of the drawn metrics are relative, paired by seed
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
    rows: Rows = Rows()
    assumptions: list[str] = []
    experiment: Settings = Settings()
    scale: PaperScales = PaperScales()
    case: list[Case] = []
    scheme: list[Scheme] = []
    grid: OptionGrid | None = None
    beside: Beside | None = None
    panel: list[Panel] = []
    reasons: dict[str, str] = {}
    claim: list[Claim] = []

    @property
    def bases(self) -> dict[str, str]:
        """The base of each scheme's ratios, by label; schemes without a base are absent."""
        bases = {scheme.label: scheme.over or self.base for scheme in self.scheme}
        return {label: base for label, base in bases.items() if base}

    def cases(self, scale: str) -> list[Case]:
        """The cases of one scale."""
        return [case for case in self.case if case.only in ("", scale)]

    @property
    def needs_flows(self) -> bool:
        """Whether the figure needs single flows, which are in the folders of runs, but not in the store."""
        return self.chart == "sizes"

    def needs(self, scale: str) -> list[str]:
        """The metrics that are shown or used in claims, and the metrics that may replace these (tails.py)."""
        claimed = (name for claim in self.claims(scale) for name in metrics_of(claim.value))
        return list(dict.fromkeys(each for name in (*self.metrics, *claimed) for each in tails(name)))

    def claims(self, scale: str) -> list[Claim]:
        """The claims that apply at one scale, each with its cases at that scale and its explanation."""
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
    return sorted((path.stem for path in FOLDER.glob("*.toml")), key=_natural_key)


def _natural_key(name: str) -> tuple[str, str, int, str]:
    """The key that sorts fig7 before fig10, and figures before tables."""
    paper, _, rest = name.partition("_")
    kind = rest.rstrip("0123456789_")
    number = rest[len(kind) :]
    return paper, kind, int(number.partition("_")[0] or 0), number


def paper_of(name: str) -> str:
    """The prefix of the names of a paper's figures and of its page, such as flowcut."""
    return name.partition("_")[0]


def figure_of(name: str) -> str:
    """The rest of the name, such as fig8."""
    return name.partition("_")[2]


def select(wanted: str) -> list[str]:
    """The files that a comma-separated list selects, each once, in the order of the papers.

    An item of the list is `all`, a paper, a file, or a figure such as fig8.

    Raises:
        SpecError: an item does not match any file.
    """
    chosen = set[str]()
    for item in wanted.split(","):
        selected = {name for name in names() if item in ("all", name, paper_of(name))}
        selected = selected or {name for name in names() if item == figure_of(name)}
        if not selected:
            papers = dict.fromkeys(map(paper_of, names()))
            raise SpecError(f"paper {unknown(item, ('list', 'all', *papers, *names()))}")
        chosen |= selected
    return [name for name in names() if name in chosen]


def read_paper(name: str) -> PaperFile:
    """Reads and checks the file of a figure or table, by name.

    Raises:
        FileError: the file is invalid.
    """
    return read_paper_file(FOLDER / f"{name}.toml")


def read_paper_file(path: Path) -> PaperFile:
    """Reads and checks the file of a figure or table.

    Raises:
        FileError: the file cannot be read, or has an unexpected key or value.
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
    """The file with other seeds at one of its scales."""
    changed = msgspec.structs.replace(file.scale.of(scale), seeds=list(seeds))
    return msgspec.structs.replace(file, scale=msgspec.structs.replace(file.scale, **{scale: changed}))


def _check(file: PaperFile) -> None:
    """Checks what the types cannot express; raises KeyProblemError."""
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
    if file.beside is not None:
        _one_of("beside.format", file.beside.format, tuple(FORMATS))
    if file.kind == "runs" and not (file.grid or file.scheme):
        raise KeyProblemError("scheme", "missing; expected schemes or a grid")
    for name in file.drawn:
        _one_of("drawn", name, file.metrics)
    _check_bases(file)
    _one_of("rows.colour", file.rows.colour, ("", "transport") if len(file.case) < 2 else ("",))
    _one_of("rows.mark", file.rows.mark, ("", *file.metrics))
    if file.grid:
        for option in file.grid.titles:
            _one_of("grid.titles", option, file.grid.options)
    if file.chart in LINES and any(scheme.tune for scheme in file.scheme):
        raise KeyProblemError("chart", f"{file.chart} cannot show a search; expected no scheme with tune")
    _check_values(file)
    cases = {case.name for case in file.case} | {panel.name for panel in file.panel}
    for number, claim in enumerate(file.claim):
        _check_claim(f"claim[{number}]", claim, cases)
        _one_of(f"claim[{number}].reason", claim.reason, ("", *file.reasons))
        if claim.reason and claim.why:
            raise KeyProblemError(f"claim[{number}].reason", "why is given, too; expected one of them")


def _check_bases(file: PaperFile) -> None:
    """Checks that the bases of ratios are schemes of the file."""
    labels = [scheme.label for scheme in file.scheme]
    if file.base:
        _one_of("base", file.base, labels)
    for number, scheme in enumerate(file.scheme):
        _one_of(f"scheme[{number}].over", scheme.over, ("", *labels))
    if file.chart == "ratios" and not any((file.beside, file.base, *(scheme.over for scheme in file.scheme))):
        raise KeyProblemError("base", "missing; expected the scheme to which ratios are relative")


def _check_values(file: PaperFile) -> None:
    """Checks that every searched option and every option of the grid has values at each scale."""
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
        checked(claim.value)
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
        raise KeyProblemError(f"{key}.expect", "expected a comparison with 1 or 0, since kind is ranking")
    if expected.sense and claim.kind == NUMBER:
        raise KeyProblemError(f"{key}.expect", "a bound needs kind direction; expected a number or a range")
    if expected.is_number and claim.kind != NUMBER:
        raise KeyProblemError(f"{key}.expect", "a single number needs kind number; expected a bound or range")


def _one_of(key: str, value: str, choices: Sequence[str]) -> None:
    if value not in choices:
        raise KeyProblemError(key, f"expected one of {', '.join(map(repr, choices))}, found {value!r}")


def _unique(key: str, listed: Sequence[str]) -> None:
    for number, name in enumerate(listed):
        if name in listed[:number]:
            raise KeyProblemError(f"{key}[{number}]", f"{name!r} is given twice")
