# SPDX-License-Identifier: Apache-2.0
"""The page of a report: a section for each figure of a paper, as on the paper's page, and for each study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from markupsafe import Markup
from matplotlib.figure import Figure
from msgspec import UnsetType

from tailrace.experiments.plan.axes import SCHEME
from tailrace.experiments.plan.command import PROGRAM, RUN, checked
from tailrace.papers.claims.kinds import FAIR, GOOD, NOT_MEASURED
from tailrace.papers.document import Document
from tailrace.report.collect import Collected
from tailrace.report.figures.figure import comparison
from tailrace.report.figures.names import named
from tailrace.report.figures.plot import Look, inline_svg
from tailrace.report.kinds import KINDS, NO_LABELS, draw_each, located
from tailrace.report.networks import misfit, network
from tailrace.report.paper.charts import document_figure, search_figure
from tailrace.report.paper.page import FUNCTIONS
from tailrace.report.render import anchor, html_page, inline, templates
from tailrace.report.sweep_figures import MEAN, base_scheme, case_of, groups_over_seeds
from tailrace.results.estimates import Estimate, Group, SummaryRow, summarise
from tailrace.results.metrics import metric
from tailrace.results.result import Result
from tailrace.results.results import Results
from tailrace.results.units import UNITS, ratio_text

_FACTS = (
    *("topology", "workload", "target", "seed", "transport", "window_bytes", "mtu_bytes", "flows", "faults"),
    *("version", "p4_sha256", "trace_sha256"),
)
_HASH_DIGITS = 12
_MOST_ROWS = 24
"""Maximum number of rows of a table that is not collapsed."""

_MOST_LINES = 8
"""Maximum number of settings for which the headline says which scheme was fastest."""

_LOOK = Look(width=4.2)
"""The look of figures of runs, two of which fit beside each other, and one on a narrow screen."""

_Figures = Iterable[tuple[Figure | None, str]]
"""Figures with their captions; None if there is nothing to draw."""


def render(collected: Collected, title: str) -> str:
    """The page as HTML.

    Raises:
        FileError: results cannot be shown.
    """
    # files of topologies may have changed since the previous page
    network.cache_clear()
    environment = templates({**FUNCTIONS, "place": _anchor_of})
    svgs: dict[str, str] = {}

    def draw(figures: _Figures) -> Iterator[tuple[str, str]]:
        """Converts figures to SVG; yields their captions and names, which are unique in the page."""
        for figure, caption in figures:
            if figure is not None:
                name = f"f{len(svgs)}"
                svgs[name] = inline_svg(figure, name, caption)
                yield caption, name

    documents = [document for _, document in collected.documents]
    contents = environment.get_template("contents.md.j2")
    sections = [contents.render(title=title, documents=documents, studies=collected.studies)]
    for file, document in collected.documents:
        with located(file):
            section = environment.get_template("section.md.j2").render(
                document=document,
                pictures=lambda document: draw(_paper_figures(document)),
                verdict=_badge,
                align_right=":",
                most_rows=_MOST_ROWS,
                shared=(),
            )
            sections.append(section)
    for number, study in enumerate(collected.studies):
        with located(study.folder):
            misfits = [misfit(result) for result in study.results.results]
            section = environment.get_template("runs.md.j2").render(
                number=number,
                study=study,
                facts=_facts(study.results.results),
                table=Markup(study.results.markdown()),  # noqa: S704 - the table is already escaped
                misfits=[text for text in dict.fromkeys(misfits) if text],
                # the caption of a table lists the schemes left out
                left_out=() if study.results.results else study.results.left_out,
                headline=headline(named(study.results, NO_LABELS)),
                pictures=draw(_study_figures(study.results)),
                command=_command(study.results),
            )
            sections.append(section)
    return html_page("\n".join(sections), title, svgs)


def _anchor_of(document: Document) -> Markup:
    """The anchor of a document's section in the page."""
    return anchor(f"{document.scale}-{document.name}")


def _badge(verdict: str) -> Markup:
    """A verdict as a badge: an image in Markdown whose URL is the badge's class in the style sheet."""
    style_class = "good" if verdict in GOOD else "fair" if verdict in (*FAIR, NOT_MEASURED) else "differs"
    return Markup("![{}]({})").format(inline(verdict), style_class)


def _paper_figures(document: Document) -> _Figures:
    yield document_figure(document), f"{document.figure}: {document.title}"
    yield search_figure(document), "Mean FCT for every flowlet gap that was tried"


def _study_figures(results: Results) -> _Figures:
    """The figures of runs that there are data for; panels are below each other, to fit a narrow screen."""
    renamed = named(results, NO_LABELS)
    for kind in KINDS.values():
        if kind is not comparison:  # its panels are figures of other kinds
            yield from draw_each(renamed, kind, _LOOK)


def _facts(results: Sequence[Result]) -> dict[str, str]:
    """The settings of the runs by title; if runs differ in a setting, all its values."""
    facts = {}
    for name in _FACTS:
        values = [getattr(result.summary, name) for result in results]
        texts = dict.fromkeys(text for value in values for text in _texts(name, value))
        facts[name.replace("_bytes", " (bytes)").replace("_", " ")] = ", ".join(texts)
    return {name: text for name, text in facts.items() if text}


def _texts(name: str, value: object) -> Sequence[str]:
    """The value of a key of a summary as a list of strings; empty if it has no value."""
    if isinstance(value, tuple):
        return value
    if value is None or isinstance(value, UnsetType):
        return ()
    if isinstance(value, int) and name.endswith("bytes"):
        return (f"{value:,}",)
    return (str(value)[:_HASH_DIGITS] if name.endswith("sha256") else str(value),)


def _command(results: Results) -> str:
    """The command that repeats all runs; if a single command cannot do that, a command for each run."""
    # checked: the command, quoted for a shell, or "" if this project would not write such a command
    runs = (checked(f"{PROGRAM} {RUN} {result.summary.option_string}") for result in results.results)
    return checked(results.command) or "\n".join(dict.fromkeys(filter(None, runs)))


# ---- the headline ----


def headline(results: Results) -> list[str]:
    """A line for each setting in which schemes were compared; else one line on the fastest value.

    Runs in which flows did not finish are left out, since their completion times are those of few flows.
    """
    complete = [group for group in groups_over_seeds(results) if group.complete]
    groups = [group for group in complete if MEAN in group.measured]
    if not groups:
        return ["In no run did every flow finish."] if results.results else []
    base = base_scheme(results)
    rows = summarise(groups, base or None)
    if not base:
        return [_fastest(groups, rows)]
    by_case: dict[str, list[SummaryRow]] = {}
    for row in rows:
        by_case.setdefault(case_of(row.settings), []).append(row)
    lines = [line for case, of_case in by_case.items() for line in _compared(case, of_case, base)]
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], f"The table has {more} more settings."] if more > 0 else lines


def _compared(case: str, rows: Sequence[SummaryRow], base: str) -> Iterator[str]:
    """Which scheme of a setting has the smallest mean completion time relative to the base."""
    rivals = [row for row in rows if MEAN in row.ratios and row.settings[SCHEME] != base]
    if not rivals or len(rivals) == len(rows):
        return
    best = min(rivals, key=lambda row: row.ratios[MEAN].value)
    ratio, where = best.ratios[MEAN], f"{case}: " if case else ""
    scheme = best.settings[SCHEME]
    if ratio.ends is not None and ratio.ends[0] <= 1 <= ratio.ends[1]:
        best_has = f"{scheme}, the best of the others, has {_times(ratio)} its FCT"
        yield f"{where}no scheme is faster than {base} beyond chance; {best_has}."
    elif ratio.value < 1:
        yield f"{where}{scheme} has the smallest mean FCT, {_times(ratio)} that of {base}."
    else:
        yield f"{where}{base} has the smallest mean FCT; {scheme}, the next, has {_times(ratio)} of it."


def _fastest(groups: Sequence[Group], rows: Sequence[SummaryRow]) -> str:
    """The mean completion time, that of the fastest group if there are several."""
    number = min(range(len(rows)), key=lambda index: rows[index].metrics[MEAN].value)
    unit = UNITS[metric(MEAN).unit]
    value = rows[number].metrics[MEAN].scaled(unit.factor)
    text = f"mean FCT {unit.shown(value.value)} {unit.name}{_interval(value)}"
    return f"{groups[number].label}: {text}" + (f", the smallest of {len(rows)}." if len(rows) > 1 else ".")


def _times(ratio: Estimate) -> str:
    return f"{ratio_text(ratio.value)} times{_interval(ratio, ratio_text)}"


def _interval(value: Estimate, show: Callable[[float], str] = "{:.3g}".format) -> str:
    """The ends of the 95 % interval in brackets; empty without an interval."""
    return "" if value.ends is None else f" ({show(value.ends[0])} to {show(value.ends[1])})"
