# SPDX-License-Identifier: Apache-2.0
"""Renders pages as Markdown from templates, and converts the Markdown of a report's page to HTML.

Values that templates insert may come from files of other people. They are escaped as text and never
interpreted as markup, unless a filter marks them as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup

from tailrace.p4rt.values import ABSENT
from tailrace.spec.version import VERSION
from tailrace.study.machine import machine
from tailrace.tables.markdown import escape, escape_line, table_row

_CODE = re.compile(r"(?<!`)(`[^`|\\]+`)(?!`)")
_RULES = ("backticks", "code", "emphasis", "escape", "heading", "image", "link", "list", "newline", "table")
_TAGS = re.compile(r'<a id="([\w.-]+)"></a>|(<details><summary>[\w ]+</summary>|</details>)')
"""The HTML tags in templates; each is on a separate line."""


def templates(functions: Mapping[str, Callable[..., object]]) -> Environment:
    """The Jinja environment of the templates, with the functions that they call."""
    environment = Environment(
        loader=PackageLoader("tailrace.report", ""),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        # makes Jinja use Markup; `finalize` converts every value to Markup, so no value is escaped as HTML
        autoescape=True,
        finalize=_text,
    )
    environment.globals.update(functions)
    filters = {"cells": _cells, "code": _code, "inline": inline, "prose": _prose, "verbatim": _verbatim}
    environment.filters.update(filters, anchor=anchor)
    return environment


def _text(value: object) -> Markup:
    """A value escaped as text that may start a line of Markdown."""
    return value if isinstance(value, Markup) else Markup(escape_line(str(value)))  # noqa: S704


def inline(value: object) -> Markup:
    """A value escaped as text that does not start a line of Markdown."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))  # noqa: S704


def _prose(text: str) -> Markup:
    """Sentences of the TOML file of a paper's figure (papers/files), escaped except for line breaks and names
    in backticks.
    """
    # parts with odd numbers are names in backticks
    lines = [
        "".join(
            part if number % 2 and part.isprintable() else escape_line(part)
            for number, part in enumerate(_CODE.split(line))
        )
        for line in text.splitlines()
        if line.strip()
    ]
    return Markup("\n".join(lines))  # noqa: S704


def _code(text: str) -> Markup:
    """A string as code; or as text, if it contains characters that would end the code or a table cell."""
    fits = text.strip() and text.isprintable() and not set(text) & set("`|")
    return Markup(f"`{text}`") if fits else _text(text)  # noqa: S704


def _verbatim(text: str) -> Markup:
    """Lines as an indented code block."""
    return Markup("\n".join(f"    {line}" for line in text.splitlines()))  # noqa: S704


def anchor(text: str) -> Markup:
    """A name as an anchor, without characters that links do not allow."""
    return Markup(re.sub(r"[^\w.-]+", "-", text))  # noqa: S704


def _cells(values: Iterable[object]) -> Markup:
    """A row of a Markdown table."""
    return Markup(table_row(ABSENT if value is None else inline(value) for value in values))  # noqa: S704


def html_page(markdown: str, title: str, pictures: Mapping[str, str]) -> str:
    """Converts the Markdown of a report to a self-contained HTML page.

    Args:
        markdown: the Markdown, in which the URL of an image is the name of a picture, or the class of a badge
            in the style sheet.
        title: the title of the page.
        pictures: SVG elements by their names.
    """
    # Markdown syntax that the templates do not use stays text
    parser = MarkdownIt("zero", {"html": False}).enable(list(_RULES))
    parser.block.ruler.before("paragraph", "tags", _tags)
    parser.core.ruler.push("figures", _figures)
    parser.add_render_rule("image", _image)
    body = Markup(parser.render(markdown, {"pictures": pictures}))  # noqa: S704 - `render` escapes all text
    shell = templates({}).overlay(finalize=None).get_template("page.html.j2")
    return shell.render(title=title, body=body, version=VERSION, machine=machine())


def _tags(state: StateBlock, start: int, _: int, silent: bool) -> bool:
    """A rule of markdown-it: an anchor starts a section; <details> tags are passed through."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    match = None if state.is_code_block(start) else _TAGS.fullmatch(line)
    if match is None or silent:
        return match is not None
    state.line = start + 1
    token = state.push("html_block", "", 0)
    token.content = match[2] or f'</section>\n<section id="{match[1]}">\n'
    return True


def _figures(state: StateCore) -> None:
    """A rule of markdown-it: a paragraph of pictures becomes a <div>, since <p> cannot contain <figure>."""
    for start, line, end in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        kinds = {child.type for child in line.children or ()}
        if start.type == "paragraph_open" and kinds <= {"image", "softbreak"}:
            start.tag = end.tag = "div"
            start.attrSet("class", "pictures")


def _image(
    self: RendererHTML, tokens: Sequence[Token], number: int, options: OptionsDict, env: EnvType
) -> str:
    """Renders an image: a picture with its caption, or a badge."""
    token = tokens[number]
    text = escapeHtml(self.renderInlineAsText(token.children, options, env))
    name = str(token.attrs["src"])
    if name in env["pictures"]:
        return f"<figure>{env['pictures'][name]}<figcaption>{text}</figcaption></figure>"
    return f'<span class="badge {escapeHtml(name)}">{text}</span>'
