# SPDX-License-Identifier: Apache-2.0
"""Builds the documentation site from docs/, without a network -> build/site/index.html

Zensical renders copies of the pages in build/docs. There, links that leave docs/ lead to TAILRACE_SOURCE_URL
(such as https://example.org/tailrace/blob/main), or are plain text without this variable. The links of a
folder's first page order the navigation. Each paper gets a page of its claims. Ends with status 1 if a link
or anchor of the site leads nowhere, or if a page loads anything from the network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

from jinja2 import Environment

from tailrace.papers.model import names, paper_of
from tailrace.report.paper.summary import documents_in
from tailrace.report.paper.table import claims_of

ROOT = Path(__file__).resolve().parent.parent
DOCS, SOURCE, SITE = ROOT / "docs", ROOT / "build" / "docs", ROOT / "build" / "site"
DOORS = {
    "Compare schemes": ("compare", "schemes", "results"),
    "Run my P4": ("programs", "switch"),
    "Learn": ("learn", "labs"),
    "Extend": ("extend",),
    "Reference": ("reference",),
}
"""The tabs of the site, with their folders; pages of the first folder come first, others are sections."""
FIRST = ("index.md", "README.md")

CLAIMS = Environment(autoescape=True, keep_trailing_newline=True).from_string(
    """---
hide: [navigation, toc]
---

# {{ title }}: all claims

All claims that [the paper's page]({{ page }}) counts. A click on a heading sorts.
`tailrace results claims --where EXPR` filters them on the command line.

<div class="claims">
<table>
<thead>
<tr>{% for column in claims.columns %}<th scope="col">{{ column.title or column.name }}</th>{% endfor %}</tr>
</thead>
<tbody>
{% for row in claims.rows -%}
<tr>{% for column in claims.columns %}<td>{{ row[column.name] }}</td>{% endfor %}</tr>
{% endfor -%}
</tbody>
</table>
</div>
"""
)
"""The page of a paper's claims, in Markdown."""

_CODE = re.compile(r"`[^`\n]+`")
_PICTURE = re.compile(r"^!\[[^\]]*\]\(([^)\s]+)\)", re.MULTILINE)
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


def config() -> dict[str, object]:
    """The settings of Zensical, in the form of mkdocs.yml."""
    palette = [("light", "default", "lucide/moon", "Dark"), ("dark", "slate", "lucide/sun", "Light")]
    return {
        "site_name": "Tailrace",
        "docs_dir": SOURCE.name,
        "site_dir": SITE.name,
        "use_directory_urls": False,
        "theme": {
            "variant": "modern",
            "font": False,
            "features": [
                "content.code.copy",
                "navigation.footer",
                "navigation.indexes",
                "navigation.tabs",
                "navigation.top",
                "search.highlight",
            ],
            "palette": [
                {
                    "media": f"(prefers-color-scheme: {light})",
                    "scheme": scheme,
                    "toggle": {"icon": icon, "name": name},
                }
                for light, scheme, icon, name in palette
            ],
        },
        # search from file:// needs this shim, which would else come from the network
        "extra": {"polyfills": ["assets/iframe-worker.js"]},
        "extra_css": ["assets/site.css"],
        "extra_javascript": ["assets/site.js"],
        "plugins": ["search", "offline"],
        "markdown_extensions": [
            "attr_list",
            "footnotes",
            "md_in_html",
            "pymdownx.details",
            "pymdownx.highlight",
            "pymdownx.superfences",
            # anchors as on GitHub
            {
                "toc": {
                    "permalink": True,
                    "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}},
                }
            },
        ],
        "nav": [
            "index.md",
            *({door: pages} for door, folders in DOORS.items() if (pages := [*_door(folders)])),
        ],
    }


def title_of(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text("utf-8").partition("# ")[2].partition("\n")[0]


def pages_of(folder: Path) -> list[Path]:
    """The pages of a folder: the first page, those to which it links, in this order, then others by name."""
    first = [folder / name for name in FIRST if (folder / name).exists()]
    text = "".join(page.read_text("utf-8") for page in first)
    linked = [folder / target.partition("#")[0] for _, target in _LINK.findall(text)]
    return [
        page
        for page in dict.fromkeys([*first, *linked, *sorted(folder.glob("*.md"))])
        if page.suffix == ".md" and page.parent == folder and page.exists()
    ]


def _door(folders: tuple[str, ...]) -> Iterator[object]:
    for place, folder in enumerate(folders):
        entries = [f"{folder}/{page.name}" for page in pages_of(DOCS / folder)]
        if place == 0:
            yield from entries
        elif entries:
            yield {folder.capitalize(): entries}


def for_site(text: str, page: Path) -> str:
    """The Markdown of a page of docs/ with links that the site has."""

    def link(match: re.Match[str]) -> str:
        name, target = match[1], match[2]
        path, _, anchor = target.partition("#")
        place = (page.parent / path).resolve()
        if re.match(r"[a-z]+:", target) or not path:
            return match[0]
        if place.is_dir():
            place = next((place / first for first in FIRST if (place / first).exists()), place)
        if place.is_file() and place.is_relative_to(DOCS):
            return f"[{name}]({os.path.relpath(place, page.parent)}{anchor and '#' + anchor})"
        url = os.environ.get("TAILRACE_SOURCE_URL", "")
        return f"[{name}]({url}/{place.relative_to(ROOT)})" if url else name

    # every second part is a block of code
    parts = re.split(r"(^```.*?^```)", text, flags=re.DOTALL | re.MULTILINE)
    # on GitHub a | in code is escaped in a table, on the site it must not be
    texts = (
        part if number % 2 else _CODE.sub(lambda code: code[0].replace("\\|", "|"), _LINK.sub(link, part))
        for number, part in enumerate(parts)
    )
    # a click on a picture shows it in its full size
    return _PICTURE.sub(r"[\g<0>](\g<1>)", "".join(texts))


def write_source() -> None:
    """Writes build/docs anew: the pages and files of docs/, and a page of claims for each paper."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    # stored runs are for programs: no page shows them
    shutil.copytree(DOCS, SOURCE, ignore=shutil.ignore_patterns("*.parquet", "*.ipynb_checkpoints"))
    for page in DOCS.glob("results/*/traces.parquet"):
        shutil.copy(page, SOURCE / page.relative_to(DOCS))
    for page in DOCS.rglob("*.md"):
        (SOURCE / page.relative_to(DOCS)).write_text(for_site(page.read_text("utf-8"), page), "utf-8")
    for paper in sorted(SOURCE.glob("results/*/")):
        _write_claims(paper)


def _write_claims(paper: Path) -> None:
    """Writes the page of a paper's claims, and a link to it below the heading of the paper's page."""
    figures = [name for name in names() if paper_of(name) == paper.name]
    claims = claims_of(documents_in(DOCS / "results", figures))
    page, table = paper.with_suffix(".md"), paper.with_name(f"claims-{paper.name}.md")
    if claims.rows and page.exists():
        title = title_of(page).partition(":")[0]
        table.write_text(CLAIMS.render(title=title, page=page.name, claims=claims), "utf-8")
        heading, _, rest = page.read_text("utf-8").partition("\n")
        page.write_text(f"{heading}\n\n[All claims, to sort and filter]({table.name})\n{rest}", "utf-8")


class Page(HTMLParser):
    """What a page of the site has.

    anchors: the ids of its elements
    links: targets within the site, as they are written
    loads: what it loads from the network
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors, self.links, self.loads = {""}, list[str](), list[str]()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects ids, links and what is loaded."""
        values = {name: value or "" for name, value in attrs}
        self.anchors.add(values.get("id", ""))
        loaded = values.get(_LOADED.get(tag, ""), "")
        target = loaded or values.get("href", "")
        if re.match(r"[a-z]+:|//", target):
            self.loads += [loaded] if re.match(r"https?:|//", loaded) else []
        elif target:
            self.links.append(target)


def problems(site: Path) -> Iterator[str]:
    """Dead links and anchors of a site, and what its pages and styles load from the network."""
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site)
        yield from (f"{where}: loads {url}" for url in page.loads)
        for link in page.links if path.name != "404.html" else ():
            target, _, anchor = unquote(link).partition("#")
            place = (path.parent / target.partition("?")[0]).resolve() if target else path
            place = place / "index.html" if place.is_dir() else place
            if not place.exists() or (place in pages and anchor not in pages[place].anchors):
                yield f"{where}: {link}: expected a page of the site and an anchor in it"
    for style in site.rglob("*.css"):
        yield from (
            f"{style.name}: loads {url}"
            for url in re.findall(r"url\((https?:[^)]*)", style.read_text("utf-8"))
        )


def main() -> int:
    """Builds and checks the site."""
    write_source()
    settings = SOURCE.parent / "mkdocs.yml"
    settings.write_text(json.dumps(config(), indent=1), "utf-8")
    shutil.rmtree(SITE, ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    build: list[str | Path] = [zensical, "build", "--clean", "--config-file", settings]
    if subprocess.run(build, check=False).returncode:
        return 1
    dead = list(problems(SITE))
    print("\n".join(dead) or os.path.relpath(SITE / "index.html"), file=sys.stderr if dead else sys.stdout)
    return 1 if dead else 0


if __name__ == "__main__":
    sys.exit(main())
