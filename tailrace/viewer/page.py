# SPDX-License-Identifier: Apache-2.0
"""The page of a replay: a template, a style sheet, scripts, and the data of its runs.

The page fetches nothing, and its Content Security Policy admits only these scripts, by their hashes. Texts of
the data, which may be other people's, become text nodes of the document.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator, Sequence
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from tailrace.spec.limits import refuse_above

MOST_BYTES = 20 << 20
"""The largest page."""

_FOLDER = files("tailrace.viewer")
_SCRIPTS = ("run", "layout", "draw", "view")


def render(title: str, data: Sequence[bytes]) -> bytes:
    """The page with this title and the data of its runs (data.py); raises SpecError if it is too large."""
    loader = PackageLoader("tailrace.viewer", "page")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    page = environment.get_template("page.html.j2").render(
        title=title,
        style=Markup((_FOLDER / "page/view.css").read_text("utf-8")),  # noqa: S704 - ours
        scripts=[(Markup(text), _sha256(text)) for text in _scripts()],  # noqa: S704 - ours and D3's
        data=[base64.b64encode(gzip.compress(each, mtime=0)).decode() for each in data],
    )
    # names of files may contain bytes that are no valid text
    content = page.encode(errors="backslashreplace")
    refuse_above("view: sample less often, or record events only", "bytes", len(content), MOST_BYTES)
    return content


def _scripts() -> Iterator[str]:
    """The modules of D3 (vendor/manifest.toml), whose order by name is one of dependencies; then ours."""
    vendored = sorted(path.name for path in (_FOLDER / "vendor").iterdir() if path.name.endswith(".js"))
    for name in (*(f"vendor/{name}" for name in vendored), *(f"page/{name}.js" for name in _SCRIPTS)):
        yield (_FOLDER / name).read_text("utf-8")


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
