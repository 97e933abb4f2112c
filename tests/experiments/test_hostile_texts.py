# SPDX-License-Identifier: Apache-2.0
"""Texts of files that others wrote are shown in a report as they are: none of them is markup, HTML or a link."""

from __future__ import annotations

import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
from markdown_it import MarkdownIt

from tailrace.cli.main import main
from tailrace.papers.claims.claims import Verdict
from tailrace.papers.document import Cell, Cost, Curve, Document
from tailrace.report.paper.page import page_text
from tailrace.tables.markdown import escape
from tests.papers.blank import blank

EVIL = (
    "# x</code></section><script>alert(1)</script><svg onload=alert(1)>",
    "](javascript:alert(1)) [x](javascript:alert(1)) ![x](f0) <javascript:alert(1)> [x]",
    "| a | b |\n|---|---|\n| c | d |",
    "```\n`x` ``y`` `|`",
    "*a* **b** _c_ __d__ ~~e~~ &lt;b&gt; \\",
    '- a\n\n1. b\n\n> c\n\n    d\n\ne\n===\n<a id="x"></a>\n\n<details><summary>f</summary>\n\n</details>',
)
"""Each is a text that would be markup, were it Markdown or HTML."""


class Live(HTMLParser):
    """What a browser makes of a page outside of its pictures: tags with the names of attributes, addresses, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: set[str] = set()
        self.text = ""
        self.feed(re.sub(r"(?s)<style>.*?</style>|<svg .*?</svg>", "", page))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        # code that could not be shown as code is text
        if tag != "code":
            self.tags.append(" ".join([tag, *(name for name, _ in attrs)]))
        self.addresses |= {value or "" for name, value in attrs if name in ("href", "src")}

    def handle_data(self, data: str) -> None:
        self.text += data


def document(text: str) -> Document:
    """A figure that has the text wherever a text may be."""
    short = text[:200]
    claim = Verdict(text, text, text, text, 1.0, text, text, text, kind="number", rerun=text)
    return blank(
        **dict.fromkeys(("paper", "figure", "title", "source", "about", "base", "kept"), text),
        name="flowcut_fig9",
        scale="small",
        command=f"tailrace paper '{text}'",
        setting={text: text, f"{short}: {text}": text},
        cases={short: short, "other": ""},
        metrics=("fct_mean",),
        cells=(
            Cell(short, short, {"fct_mean": 1.0}, value=text, note=text, ratios={"fct_mean": (1.0,)}),
            Cell("other", short, {}),
        ),
        curves=(Curve(short, short, (1.0, 2.0), (1.0, 2.0)),),
        claims=(claim,),
        assumptions=(text,),
        reductions=(text,),
        failed=(text,),
        notes=(text,),
        cost=Cost(1, 1.0, 1, (text,)),
    )


def live(folder: Path, title: str) -> Live:
    assert main(["report", str(folder), "--title", title, "--out", str(folder / "page.html")]) == 0
    page = Live((folder / "page.html").read_text())
    assert all(address.startswith("#") for address in page.addresses)
    return page


def shown(text: str) -> str:
    """A text as a browser shows it: white space is a blank."""
    return " ".join(text.split())


def of_figure(folder: Path, text: str) -> Live:
    folder.mkdir()
    (folder / "result.json").write_bytes(msgspec.json.encode(document(text)))
    return live(folder, text)


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_of_a_figure(text: str, tmp_path: Path) -> None:
    """The page has the tags that it has with a word, and shows the text."""
    page = of_figure(tmp_path / "evil", text)
    assert page.tags == of_figure(tmp_path / "plain", "word").tags
    assert shown(page.text).count(shown(text)) > 20


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_of_the_page_of_a_paper(text: str, tmp_path: Path) -> None:
    """Whoever shows the Markdown, with HTML and all that it can have, shows the text."""
    parser = MarkdownIt("js-default", {"html": True, "linkify": False})
    pages = [Live(parser.render(page_text([document(each)], tmp_path))) for each in (text, "word")]
    assert pages[0].tags == pages[1].tags
    assert pages[0].addresses == pages[1].addresses


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, one of which is to fail."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    words = ["--target", "virtual", "--topology", "leaf-spine:leaves=2,spines=2,hosts=1"]
    words += ["--workload", "permutation:size=1KiB", "--out", str(out)]
    assert main(["sweep", "--set", "scheme=ecmp,spray", *words]) == 0
    return out


def of_runs(sweep: Path, folder: Path, text: str) -> Live:
    """With the text wherever a result of a run has one."""
    shutil.copytree(sweep, folder)
    results = json.loads((folder / "results.json").read_text())
    run, failed = results["runs"]
    del run["summary"]  # so that it may be another
    failed["failed"] = text
    for each in (run, failed):
        each["settings"]["scheme"] = f"{text} {each['settings']['scheme']}"
    results["axes"]["scheme"] = [each["settings"]["scheme"] for each in (run, failed)]
    results["left_out"] = [{"scheme": text, "reason": text}]
    (folder / "results.json").write_text(json.dumps(results))
    file = folder / run["folder"] / "summary.json"
    summary: dict[str, Any] = json.loads(file.read_text())
    summary |= dict.fromkeys(("case", "label", "topology", "workload", "transport", "version"), text)
    summary |= {"faults": [text], "not_applied": [text]}
    file.write_text(json.dumps(summary))
    return live(folder, text)


@pytest.mark.parametrize("text", EVIL, ids=range(len(EVIL)))
def test_of_runs(text: str, sweep: Path, tmp_path: Path) -> None:
    page = of_runs(sweep, tmp_path / "evil", text)
    assert page.tags == of_runs(sweep, tmp_path / "plain", "word").tags
    assert shown(page.text).count(shown(text)) > 5


@pytest.mark.parametrize(
    "text",
    ["1,805 (1,790..1,820)", "<= 1.15", "a & b", "RLB* lowers it", "T * alpha", "Q_th", "runs[0].folder"],
)
def test_harmless_texts_are_left_alone(text: str) -> None:
    """They are read as Markdown, too."""
    assert escape(text) == text
