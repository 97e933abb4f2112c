# SPDX-License-Identifier: Apache-2.0
"""The documentation site as `make docs` builds it, and what its scripts do in a browser, opened from a file."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.test_readme import ROOT
from tests.viewer.browser import CHROMIUM, Tab, browser

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
LOADED = "document.readyState === 'complete' && document.querySelector('.md-search__button')"
SHADOW = "[...document.querySelectorAll('*')].find(e => e.shadowRoot)?.shadowRoot"


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """scripts/make_site.py, which builds into a folder of its own."""
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "scripts" / "make_site.py")
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    folder = tmp_path_factory.mktemp("site")
    module.SOURCE, module.SITE = folder / "docs", folder / "site"
    assert module.main() == 0
    return module


def test_every_page_is_built(script: Any) -> None:
    """Each page of docs/, a page of claims for each paper, and what search needs without a server."""
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix().replace("README", "index")
        assert (script.SITE / name).exists(), name
    papers = {path.name for path in (ROOT / "docs" / "results").iterdir() if path.is_dir()}
    assert {path.stem for path in script.SITE.glob("results/claims-*.html")} == {
        f"claims-{p}" for p in papers
    }
    assert (script.SITE / "search.js").exists()


def test_links_that_leave_the_pages(script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    page = ROOT / "docs" / "learn" / "index.md"
    text = "[hosts](../../tailrace/hosts), [results](../results), [faults](../compare/faults.md#when)"
    inside = "[results](../results/README.md), [faults](../compare/faults.md#when)"
    assert script.for_site(text, page) == f"hosts, {inside}"
    monkeypatch.setenv("TAILRACE_SOURCE_URL", "https://example.org/main")
    assert script.for_site(text, page) == f"[hosts](https://example.org/main/tailrace/hosts), {inside}"


def test_pictures_are_svg_documents() -> None:
    """A browser shows nothing of an SVG file that is no XML document with this root."""
    for path in (ROOT / "docs").rglob("*.svg"):
        assert ElementTree.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg", path


@pytest.mark.parametrize(
    ("html", "problem"),
    [
        ('<a href="nowhere.html">', "index.html: nowhere.html: expected"),
        ('<a href="learn/slowdown.html#nowhere">', "index.html: learn/slowdown.html#nowhere: expected"),
        ('<img src="img/nowhere.png">', "index.html: img/nowhere.png: expected"),
        ('<script src="https://example.org/x.js"></script>', "index.html: loads https://example.org/x.js"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "index.html: loads //example.org/x.css"),
    ],
)
def test_what_is_wrong_is_reported(script: Any, tmp_path: Path, html: str, problem: str) -> None:
    site = tmp_path / "site"
    shutil.copytree(script.SITE, site)
    (site / "index.html").write_text((site / "index.html").read_text("utf-8") + html, "utf-8")
    (line,) = script.problems(site)
    assert line.startswith(problem)


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    if CHROMIUM is None:
        pytest.skip("no browser (Debian: apt-get install chromium)")
    with browser() as opened:
        yield opened


def visit(tab: Tab, page: Path) -> None:
    tab.call("Page.navigate", url=page.as_uri())
    until(tab, LOADED)


def until(tab: Tab, condition: str) -> None:
    tab.evaluate(f"""new Promise((done, fail) => {{
        const wait = () => ({condition}) ? done(true) : setTimeout(wait, 20);
        setTimeout(() => fail("not within a minute: " + document.body.innerText.slice(0, 300)), 60000);
        wait();
    }})""")


def search(tab: Tab, text: str) -> None:
    tab.evaluate("document.querySelector('.md-search__button').click()")
    until(tab, f"{SHADOW}?.activeElement?.matches('input')")
    tab.call("Input.insertText", text=text)
    until(tab, f"{SHADOW}.querySelector('[role=option]')")


def test_the_search_works_from_a_file(script: Any, tab: Tab) -> None:
    visit(tab, script.SITE / "compare" / "index.html")
    search(tab, "headroom")
    links = tab.evaluate(f"[...{SHADOW}.querySelectorAll('[role=option]')].map(e => e.href)")
    assert any("compare/buffers.html" in link for link in links)
    assert all(link.startswith("file:") for link in links)


def test_claims_are_sorted_and_filtered(script: Any, tab: Tab) -> None:
    visit(tab, script.SITE / "results" / "claims-rlb.html")
    rows = "[...document.querySelectorAll('.claims tbody tr')].filter(row => !row.hidden)"
    titles = tab.evaluate("[...document.querySelectorAll('.claims th')].map(e => e.textContent)")
    verdict, total = titles.index("verdict"), tab.evaluate(f"{rows}.length")
    cells = f"{rows}.map(row => row.cells[{verdict}].textContent)"
    verdicts = tab.evaluate(cells)
    for order in (False, True):
        tab.evaluate(f"document.querySelectorAll('.claims th button')[{verdict}].click()")
        assert tab.evaluate(cells) == sorted(verdicts, reverse=order)
    tab.evaluate("""(() => {
        const choice = document.querySelector('.claims-filter select');
        choice.value = 'reversed';
        choice.dispatchEvent(new Event('input', { bubbles: true }));
    })()""")
    assert set(tab.evaluate(cells)) == {"reversed"}
    shown = tab.evaluate("document.querySelector('.claims-filter output').textContent")
    assert shown == f"{verdicts.count('reversed')} of {total} claims"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize(
    "page", ["index", "compare/index", "programs/index", "learn/index", "extend/index", "results/claims-rlb"]
)
def test_pages_fit_and_are_accessible(script: Any, tab: Tab, page: str, width: int, dark: bool) -> None:
    """Nothing serious or critical for axe, and no page is wider than the window; the last page with a search."""
    if not AXE.exists():
        pytest.skip("axe-core is missing (npm install --no-save axe-core@4.14.1)")
    tab.size(width, 900, dark)
    visit(tab, script.SITE / f"{page}.html")
    tab.evaluate("localStorage.clear()")  # the theme of an earlier page
    visit(tab, script.SITE / f"{page}.html")
    if page == "results/claims-rlb":
        search(tab, "headroom")
    until(tab, "document.getAnimations().length === 0")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.evaluate(AXE.read_text("utf-8") + ";0")
    grave = "axe.run().then(r => r.violations.filter(v => ['serious', 'critical'].includes(v.impact)))"
    assert tab.evaluate(f"{grave}.then(list => list.map(v => [v.id, v.nodes[0].html]))") == []
