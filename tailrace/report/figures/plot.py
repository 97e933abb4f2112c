# SPDX-License-Identifier: Apache-2.0
"""The style of figures, their size, and their conversion to files, or to SVG inline in a page.

Colours are those of Okabe and Ito, which people with any colour vision can distinguish; line styles and
hatches differ, too, so that figures can be printed in grey.
"""

from __future__ import annotations

import io
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tailrace.spec import SpecError, UnitError
from tailrace.spec.atomic import write_file
from tailrace.spec.units import split

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8C8C00", "#7A7A7A")
LINES = ("-", "--", "-.", ":")
HATCHES = ("", "//", "..", "xx")
DOTS_PER_INCH = 150
BAND_ALPHA = 0.18
"""Opacity of the band of an interval."""

_UNITS_PER_INCH = {"in": 1.0, "cm": 2.54, "mm": 25.4}
_MOST_INCHES = 50

_DECADES = 1.5
"""An axis is logarithmic if its values span more decades."""

_LEAST_PANEL_INCHES = 2.4
_LEAST_HEIGHT = 0.62
"""Least width of a panel in a figure of a given width, and its least height as a share of its width."""

_PIXELS_PER_INCH = 112
"""Resolution of figures in a page, at which text in figures is slightly smaller than the page's text."""

_LEAST_SCALE = 0.7
"""Scale down to which figures shrink on a narrow screen, with legible text; wider figures scroll."""

_LETTER_INCHES = 0.066
_SAMPLE_INCHES = 0.5
_LINE_INCHES = 0.19
_LEGEND_LINES = 2
_MOST_ENTRIES = 24
"""Dimensions of a legend: approximate width of a letter, width of the sample before a name, height of a line,
maximum number of lines without a change of the figure's height, and maximum number of entries."""

_INK = "#0a0b0c"
"""Colour of text and axes; nothing else has it, so that a page can replace it by the page's text colour."""

_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": _INK,
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": _INK,
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "font.size": 9,
    "grid.alpha": 0.25,
    "grid.color": _INK,
    "hatch.linewidth": 0.6,
    "legend.labelcolor": _INK,
    "savefig.facecolor": "none",
    "text.color": _INK,
    # `$` in names of files and schemes does not start a formula
    "text.parse_math": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    # equal results give byte-identical files
    "svg.hashsalt": "tailrace",
    # text stays text: outlines of letters would be two thirds of a file
    "svg.fonttype": "none",
    # TrueType: publishers refuse matplotlib's Type 3 fonts
    "pdf.fonttype": 42,
}

_OF_PROCESS = ("backend", "backend_fallback")
"""Settings of matplotlib that do not affect a figure, and that cannot be set for one block only."""

_EPOCH = "SOURCE_DATE_EPOCH"
"""An environment variable from which matplotlib reads a date even if a figure has none."""

_ID = re.compile(r' id="([^"]+)"')
_STYLES = re.compile(r' style="([^"]*)"')
_FONT = re.compile(r"font-family: [^;\"]*;? ?")
_GEOMETRY = re.compile(r' (?:d|transform|x|y|width|height)="[^"]*"')
_DECIMALS = re.compile(r"\d+\.\d{2,}")
_INDENT = re.compile(r"\n\s+")
_NO_TURN = re.compile(r' transform="rotate\(-?0 [^"]*\)"')
_REFERENCE = re.compile(r'(url\(#|href="#)([^)"]+)')


@contextmanager
def style(changes: Mapping[Any, Any] = MappingProxyType({})) -> Iterator[None]:
    """Within the block matplotlib uses the style above, not the user's configuration, and shows no warnings.

    `changes` override settings of the style.
    """
    epoch = os.environ.pop(_EPOCH, None)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            defaults = {key: value for key, value in mpl.rcParamsDefault.items() if key not in _OF_PROCESS}
            with mpl.rc_context({**defaults, **_STYLE, **changes}):
                yield
    finally:
        if epoch is not None:
            os.environ[_EPOCH] = epoch


class _Figure(Figure):
    """A figure whose files have the style above, whatever the configuration of the process is then."""

    def savefig(self, *args: Any, **options: Any) -> None:
        """Writes a file, as matplotlib does."""
        with style():
            super().savefig(*args, **options)


@dataclass(frozen=True, slots=True)
class Look:
    """What a user chooses about a figure.

    width, height: of the figure in inches; None: from its content
    log: whether axes of values are logarithmic; None: where values are positive and span _DECADES
    """

    width: float | None = None
    height: float | None = None
    log: bool | None = None

    def is_log(self, values: Iterable[float]) -> bool:
        """Whether the axis of these values is logarithmic; it never is without positive values."""
        numbers = list(values)
        positive = [value for value in numbers if value > 0]
        if self.log is not None or not positive:
            return bool(self.log and positive)
        return len(positive) == len(numbers) and max(positive) > min(positive) * 10**_DECADES

    def scale(self, axis: Axes, which: str, values: Iterable[float]) -> bool:
        """Makes an axis of values logarithmic, or lets it begin at 0; returns whether it is logarithmic."""
        numbers = list(values)
        if not self.is_log(numbers):
            (axis.set_xlim if which == "x" else axis.set_ylim)(0)
            return False
        logarithmic(axis, which)
        positive = [value for value in numbers if value > 0]
        # ends of intervals may be 0, which this axis does not have
        (axis.set_xlim if which == "x" else axis.set_ylim)(min(positive) / 1.2, max(positive) * 1.2)
        if max(positive) < min(positive) * 100:  # few powers of ten, or none
            (axis.xaxis if which == "x" else axis.yaxis).set_major_locator(LogLocator(subs=(1, 2, 5)))
        return True


def parse_inches(text: str) -> float:
    """A length such as 3.3in, 8.4cm or 84mm in inches.

    Raises:
        SpecError: another unit, or a length that is too small or too large for a figure.
    """
    try:
        value, unit = split(text)
        inches = float(value) / _UNITS_PER_INCH[unit]
    except (UnitError, KeyError):
        inches = 0.0
    if not 1 <= inches <= _MOST_INCHES:
        raise SpecError(
            f"{text[:40]!r}: expected a length of 1 to {_MOST_INCHES} inches, such as 3.3in, 8.4cm or 84mm"
        )
    return inches


Ends = tuple[float, float] | None
"""The ends of an interval; None without an interval."""

NATURAL = Look()
"""The look without choices."""


def panels(
    count: int,
    look: Look = NATURAL,
    *,
    width: float = 4.2,
    height: float = 3.4,
    columns: int = 3,
    scaled: bool = True,
) -> tuple[Figure, list[Axes]]:
    """A figure of `count` panels of this size in inches, in rows of at most `columns`; call it in `style`.

    If `look` has a width, panels share it, and their height shrinks with their width if `scaled`.
    """
    column_count = min(count, columns)
    if look.width is not None:
        column_count = max(1, min(column_count, int(look.width / _LEAST_PANEL_INCHES)))
        panel_width = look.width / column_count
        if scaled:
            height = min(height, max(height * panel_width / width, _LEAST_HEIGHT * panel_width))
        width = panel_width
    row_count = -(-count // column_count)
    figure = _Figure(figsize=(width * column_count, height * row_count))
    figure.set_layout_engine("constrained", h_pad=0.1, w_pad=0.1)
    axes = figure.subplots(row_count, column_count, squeeze=False).ravel()
    for spare in axes[count:]:
        spare.set_axis_off()
    return figure, list(axes[:count])


def colour(number: int) -> str:
    return COLOURS[number % len(COLOURS)]


def line(number: int) -> str:
    return LINES[number % len(LINES)]


def logarithmic(
    axes: Axes, which: str, text: Callable[[float], str] = "{:,.10g}".format, *, base: int = 10
) -> None:
    """Makes the axis `which` ("x" or "y") logarithmic to a base; `text` formats its numbers."""
    (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))
    axis.set_minor_formatter(NullFormatter())


def bar(
    axis: Axes,
    x: float,
    height: float,
    width: float,
    number: int,
    text: str,
    *,
    label: str,
    ends: tuple[float, float] | None,
    **style: Any,
) -> float:
    """Draws the bar of the scheme with the index `number`, its interval, and `text` above both.

    Returns the upper end of bar and interval. If there are more schemes than colours, further bars are
    hatched. `style` contains properties of the text.
    """
    axis.bar(
        x,
        height,
        width,
        color=colour(number),
        hatch=HATCHES[number // len(COLOURS) % len(HATCHES)],
        edgecolor="white",
        linewidth=0,
        label=label,
    )
    if ends is not None:
        interval(axis, ends, x=x)
    top = height if ends is None else max(height, ends[1])
    axis.annotate(text, (x, top), (0, 2), textcoords="offset points", ha="center", **style)
    return top


def interval(axis: Axes, ends: tuple[float, float], *, x: float | None = None, y: float = 0.0) -> None:
    """Draws an error bar between the ends of an interval: vertical at `x`, or horizontal at `y`."""
    middle, half = (ends[0] + ends[1]) / 2, abs(ends[1] - ends[0]) / 2
    where = (middle, y, None, half) if x is None else (x, middle, half, None)
    axis.errorbar(
        where[0],
        where[1],
        yerr=where[2],
        xerr=where[3],
        fmt="none",
        ecolor=_INK,
        elinewidth=1.0,
        capsize=2.0,
    )


def band(axis: Axes, x: Iterable[float], ends: Iterable[Ends], number: int) -> None:
    """Fills the intervals at `x` of the scheme with the index `number`; where there is none, nothing."""
    points = [(at, *pair) for at, pair in zip(x, ends, strict=False) if pair is not None]
    if points:
        middle, low, high = zip(*points, strict=True)
        axis.fill_between(middle, low, high, color=colour(number), alpha=BAND_ALPHA, linewidth=0)


def panel_inches(axis: Axes) -> float:
    """The width of a panel and its labels."""
    place, figure = axis.get_subplotspec(), axis.get_figure(root=True)
    assert place is not None
    assert figure is not None
    return float(figure.get_figwidth()) / place.get_gridspec().ncols


def shortened(text: str, inches: float) -> str:
    """The text, or its beginning if it is wider than `inches`."""
    letters = max(8, int(inches / _LETTER_INCHES))
    return text if len(text) <= letters else f"{text[: letters - 1]}…"


_PADDING_INCHES = 0.1
_LEGEND: dict[str, Any] = {"loc": "outside lower center", "frameon": False}


def _fits(figure: Figure, handles: list[Any], names: list[str], across: int) -> bool:
    """Draws a legend in `across` columns, and removes it if it is wider than its figure."""
    drawn = figure.legend(handles, names, ncols=across, **_LEGEND)
    # the padding around a legend may be outside, since it is invisible
    if drawn.get_window_extent().width <= figure.bbox.width + _PADDING_INCHES * figure.dpi:
        return True
    drawn.remove()
    return False


def legend(figure: Figure, *axes: Axes, columns: int = 5) -> None:
    """Draws one legend below all panels, with one entry per label, in at most `columns` columns."""
    entries: dict[str, Any] = {}
    for axis in axes:
        for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    if len(entries) < 2:
        return
    handles, names = list(entries.values())[:_MOST_ENTRIES], list(entries)[:_MOST_ENTRIES]
    if len(entries) > _MOST_ENTRIES:
        names[-1] = f"… {len(entries)} in all"
    entry_inches = _SAMPLE_INCHES + _LETTER_INCHES * max(map(len, names))
    across = max(1, min(len(names), columns, int(figure.get_figwidth() / entry_inches)))
    while not _fits(figure, handles, names, across):
        if across == 1:
            names = [shortened(name, figure.get_figwidth() - _SAMPLE_INCHES) for name in names]
            figure.legend(handles, names, **_LEGEND)
            break
        across -= 1
    lines = -(-len(names) // across)
    figure.set_figheight(figure.get_figheight() + _LINE_INCHES * max(0, lines - _LEGEND_LINES))


def save(figure: Figure, path: Path, kind: str = "") -> Path:
    """Writes a figure, on white, atomically to a file in the format `kind`, or that of its suffix; returns
    the path.
    """
    kind = kind or path.suffix.removeprefix(".")
    if kind == "svg":
        text = _with_classes(_without_groups(_svg(figure, "tailrace", facecolor="white")))
        write_file(path, text.replace("<svg", '<svg font-family="DejaVu Sans, Verdana, sans-serif"', 1))
        return path
    out = io.BytesIO()
    # a PDF has no date, so that equal results give equal files
    metadata = {"CreationDate": None} if kind == "pdf" else None
    with style():
        figure.savefig(out, format=kind, dpi=DOTS_PER_INCH, facecolor="white", metadata=metadata)
    write_file(path, out.getvalue())
    return path


def _svg(figure: Figure, salt: str, prefix: str = "", **options: Any) -> str:
    """A figure as an SVG element, without what takes most of matplotlib's text: fonts, unused ids, metadata,
    digits beyond a tenth of a point.

    Args:
        salt: decides the ids in the element.
        prefix: of every id that is used.
        options: of matplotlib's savefig.
    """
    out = io.StringIO()
    with style({"svg.hashsalt": salt}):
        # not that of _Figure, which would replace the salt
        Figure.savefig(figure, out, format="svg", metadata={"Date": None}, **options)
    text = out.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    used = {match[2] for match in _REFERENCE.finditer(text)}
    text = _ID.sub(lambda match: f' id="{prefix}{match[1]}"' if match[1] in used else "", text)
    text = _REFERENCE.sub(rf"\g<1>{prefix}\g<2>", text)
    text = _FONT.sub("", text)
    text = _GEOMETRY.sub(lambda match: _DECIMALS.sub(_rounded, match[0]), text)
    return _INDENT.sub("\n", text)


def _without_groups(text: str) -> str:
    """An SVG document without groups that have no attribute, and without rotations by 0: a sixth shorter."""
    lines, groups = list[str](), list[bool]()
    for line in text.split("\n"):
        keeps = line not in ("<g>", "<g/>")
        if line == "</g>":
            keeps = groups.pop()
        elif line.startswith("<g") and not line.endswith("/>"):
            groups.append(keeps)
        if keeps:
            lines.append(line)
    return _NO_TURN.sub("", "\n".join(lines))


def _with_classes(text: str) -> str:
    """An SVG document in which each style that several elements have is a class: a quarter shorter."""
    styles = Counter(match[1] for match in _STYLES.finditer(text))
    classes = {each: f"s{number}" for number, (each, count) in enumerate(styles.most_common()) if count > 1}
    rules = "".join(f".{name}{{{each}}}" for each, name in classes.items())
    head, end, body = text.partition(">")
    body = _STYLES.sub(
        lambda match: f' class="{classes[match[1]]}"' if match[1] in classes else match[0], body
    )
    return f"{head}{end}<style>{rules}</style>{body}"


def _rounded(number: re.Match[str]) -> str:
    # a number below 1 may be a factor: matplotlib scales glyphs by 0.015625
    return number[0] if number[0].startswith("0.") else f"{float(number[0]):.1f}".removesuffix(".0")


def inline_svg(figure: Figure, name: str, title: str) -> str:
    """A figure as an SVG element for a page.

    Args:
        figure: drawn in `style`.
        name: unique in the page; the prefix of every id in the element.
        title: the description for screen readers.
    """
    head, _, body = _svg(figure, name, f"{name}-").replace(_INK, "currentColor").partition(">")
    width = round(figure.get_figwidth() * _PIXELS_PER_INCH)
    head = re.sub(r' (width|height|xmlns:xlink|version)="[^"]*"', "", head)
    body = body.replace("xlink:href", "href")
    size = f"width: {width}px; min-width: {round(width * _LEAST_SCALE)}px"
    return f'{head} style="{size}" role="img" aria-label="{_escaped(title)}">{body}'.strip()


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
