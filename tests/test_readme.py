# SPDX-License-Identifier: Apache-2.0
"""The README and docs/ tell the truth: the example runs and prints what it says; folders, targets, files exist."""

from __future__ import annotations

import functools
import re
from importlib import util
from pathlib import Path

import pytest

from tailrace.cli.complete import KINDS
from tailrace.experiments.plan.experiment import KEYS
from tailrace.experiments.plan.experiment_file import read_experiment
from tailrace.experiments.plan.plan import plan
from tailrace.switch.daemon.command_line import make_parser

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text("utf-8")
SWITCH = [*sorted((ROOT / "docs" / "switch").glob("*.md")), ROOT / "tailrace" / "switch" / "README.md"]
"""The pages of the switch."""
EXPERIMENTS = (ROOT / "docs" / "compare" / "index.md").read_text("utf-8")
KEY_TABLES = (ROOT / "docs" / "reference" / "keys.md").read_text("utf-8")
OF_USERS = [
    ROOT / "docs" / "programs" / f"{name}.md" for name in ("index", "ecn", "link_monitor", "load_balance")
]
"""Pages on programs of users; tests/user_programs executes their commands."""
DOCS = [
    page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name not in ("results", "switch")
]
"""The pages of the lab that are not generated."""


TUTORIALS = [ROOT / "docs" / door / "tutorial.md" for door in ("compare", "programs", "extend")]
"""Pages whose commands a test executes in their order."""


def block_after(text: str, opening: str) -> str:
    """The code block of `text` that starts with the line `opening`."""
    match = re.search(re.escape(opening) + r"\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert match is not None, f"README has no block that starts with {opening!r}"
    return match.group(1)


@pytest.mark.parametrize("name", ["switch/python.md", "extend/network.md", "extend/python.md"])
def test_python_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """The example, run from the root of the checkout, prints the lines shown under it."""
    monkeypatch.chdir(ROOT)
    text = (ROOT / "docs" / name).read_text("utf-8")
    exec(compile(block_after(text, "```python"), f"docs/{name}", "exec"), {})
    expected = block_after(text.partition("It prints")[2], "```")
    assert expected == capsys.readouterr().out


def test_experiment_file(tmp_path: Path) -> None:
    """The file that docs/compare/index.md shows is one, and can be planned."""
    path = tmp_path / "slow.toml"
    path.write_text(block_after(EXPERIMENTS, "```toml"), "utf-8")
    planned = plan(read_experiment(path), "virtual")
    assert len(planned.job.flows) == len(planned.topology.hosts)


def test_experiment_keys() -> None:
    """docs/reference/keys.md names every key of an experiment."""
    named = set(re.findall(r"`(\w+)`", KEY_TABLES.partition("| key |")[2].partition("\n## ")[0]))
    assert set(KEYS) - named == {"flows"}


def test_key_tables() -> None:
    """What the tables of keys say is what is declared; `make docs` writes them."""
    spec = util.spec_from_file_location("key_tables", ROOT / "scripts" / "key_tables.py")
    assert spec is not None and spec.loader is not None
    script = util.module_from_spec(spec)
    spec.loader.exec_module(script)
    pages = {path: path.read_text("utf-8") for path in (ROOT / "docs").rglob("*.md")}
    assert [path.name for path, text in pages.items() if script.written(text) != text] == []
    kinds = {*script.STRUCTS, *KINDS, "limits", "metrics", "resources"}
    assert {kind for text in pages.values() for kind in re.findall(r"<!-- keys: (\S+) ", text)} == kinds
    limits = {
        place for place in script.LIMITS.values() if any(f"`{place}`" in text for text in pages.values())
    }
    assert limits == set(script.LIMITS.values())
    assert "`nonsense`" not in script.written(
        "<!-- keys: faults drop -->\n`nonsense`\n<!-- end of keys -->\n"
    )


def test_switch_options() -> None:
    """Every option that docs/switch/running.md names is one of the switch's, ours are all in it."""
    option = re.compile(r"--[a-z][a-z0-9-]+")
    page = (ROOT / "docs" / "switch" / "running.md").read_text("utf-8")
    named = set(option.findall(page.partition("\n## Options\n")[2].partition("\n## ")[0]))
    known = make_parser().format_help()
    switch_options = re.findall(r"^  (--[a-z][a-z0-9-]+)", known.partition("does not have")[2], re.MULTILINE)
    assert named - set(option.findall(known)) - {"--help"} == set()
    assert switch_options
    assert set(switch_options) <= named


def test_folders_exist() -> None:
    """Every folder in the table is there."""
    page = (ROOT / "docs" / "extend" / "architecture.md").read_text("utf-8")
    folders = re.findall(r"^\| `([\w/]+/)`", page, re.MULTILINE)
    assert folders
    assert [folder for folder in folders if not (ROOT / folder).is_dir()] == []


def test_make_targets_exist() -> None:
    """Every `make TARGET` in a code block is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    texts = [README, *(page.read_text("utf-8") for page in SWITCH)]
    targets = {name for text in texts for name in re.findall(r"^make ([a-z0-9-]+)", text, re.MULTILINE)}
    assert {"run", "test"} <= targets
    assert {target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()


def test_the_readme_is_short() -> None:
    """It begins with a picture and a command, and fits on a few screens."""
    lines = README.splitlines()
    assert len(lines) < 120
    assert max(map(len, lines)) <= 140


def outside_code(page: Path) -> str:
    """The text of a page without blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


@functools.cache
def anchors(page: Path) -> set[str]:
    """The anchors of a page: those of its headings, as GitHub and the site make them, and those in HTML."""
    headings = re.findall(r"^#+ (.*)$", outside_code(page), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"<a id=\"([^\"]+)\"", page.read_text("utf-8")))


def test_links_lead_somewhere() -> None:
    """Every relative link and picture of README and docs/ is a file or folder of the project, and its anchor in it."""
    pages = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *SWITCH}
    missing = []
    for page in sorted(pages):
        for target, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", outside_code(page)):
            place = (page.parent / target).resolve() if target else page
            if not place.exists() or (anchor and place.suffix == ".md" and anchor not in anchors(place)):
                missing.append(f"{page.relative_to(ROOT)}: {target}#{anchor}")
    assert [] == missing


MOST_WORDS = 800
UNBOUNDED = ("reference", "schemes")
REFERENCES = [ROOT / "docs" / "learn" / "glossary.md"]


def test_pages_are_short() -> None:
    """No page but references and generated ones has more words than this, without tables and code."""
    long_pages = []
    for page in DOCS:
        text = re.sub(r"^\s*\|.*$|<!--.*?-->|\]\([^)]*\)", "", outside_code(page), flags=re.MULTILINE)
        if len(text.split()) > MOST_WORDS and page not in REFERENCES and page.parent.name not in UNBOUNDED:
            long_pages.append(f"{page.relative_to(ROOT)}: {len(text.split())} words")
    assert [] == long_pages


def test_the_first_page_of_a_folder_links_to_the_others() -> None:
    """The site takes the order of pages from these links, and a reader on GitHub finds pages by them only."""
    missing = [
        str(page.relative_to(ROOT))
        for first in (ROOT / "docs").rglob("*.md")
        if first.name in ("index.md", "README.md")
        for page in first.parent.glob("*.md")
        if page != first and f"({page.name}" not in first.read_text("utf-8")
    ]
    assert missing == []


FOLDERS = "tailrace|controller|mininet|bench|conformance|ptf_tests|scripts|tests|docs|p4src"
PLACEHOLDERS = ("NAME", "ROOM", "SCHEME")


def test_named_files_exist() -> None:
    """Every file and folder of ours that a document or a comment in P4 names is there."""
    texts = {*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *SWITCH, *(ROOT / "p4src").rglob("*.p4")}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sorted(texts)
        for name in re.findall(
            rf"(?<![\w./:-])((?:{FOLDERS})/[\w./-]*\w/?)(?![\w*])", path.read_text("utf-8")
        )
        if not any(word in name for word in PLACEHOLDERS)
        and not (ROOT / name).exists()
        # P4 sources stay as they were compiled: a comment names a page, in whatever folder of docs/ it is
        and not (path.suffix == ".p4" and any((ROOT / "docs").rglob(Path(name).name)))
    ]
    assert missing == []


def test_the_version_to_cite_is_the_projects() -> None:
    """CITATION.cff has the version of the release that is prepared, and the licence of pyproject.toml."""
    cited = (ROOT / "CITATION.cff").read_text("utf-8")
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    license_ = re.findall(r'^license = "(.*)"$', project, re.MULTILINE)
    assert len(license_) == 1
    version = re.findall(r'^fallback_version = "(.*)"$', project, re.MULTILINE)
    assert len(version) == 1
    for key, values in {"version": version, "license": license_}.items():
        assert re.findall(rf"^{key}: (.*)$", cited, re.MULTILINE) == values
