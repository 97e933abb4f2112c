# SPDX-License-Identifier: Apache-2.0
"""Pages are Markdown, from templates; the page of a report is that Markdown as HTML.

What templates are given was written by others: it is text and never markup, unless a filter says otherwise.
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
from tailrace.results.summary import installed_version
from tailrace.study.machine import machine
from tailrace.tables.markdown import escape, escape_line, table_row

_CODE = re.compile(r"(?<!`)(`[^`|\\]+`)(?!`)")
_RULES = ("backticks", "code", "emphasis", "escape", "heading", "image", "link", "list", "newline", "table")
_TAGS = re.compile(r'<a id="([\w.-]+)"></a>|(<details><summary>[\w ]+</summary>|</details>)')
"""The HTML that our templates have: each on a line of its own."""


def templates(functions: Mapping[str, Callable[..., object]]) -> Environment:
    """The templates of pages and their parts, and the functions that these call."""
    environment = Environment(
        loader=PackageLoader("tailrace.report", ""),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
        # marks what is Markdown already; `finalize` sees a value first, so nothing is escaped for HTML here
        autoescape=True,
        finalize=_text,
    )
    environment.globals.update(functions)
    filters = {"cells": _cells, "code": _code, "inline": inline, "prose": _prose, "verbatim": _verbatim}
    environment.filters.update(filters, anchor=anchor)
    return environment


def _text(value: object) -> Markup:
    """A value as text that may begin a line."""
    return value if isinstance(value, Markup) else Markup(escape_line(str(value)))  # noqa: S704


def inline(value: object) -> Markup:
    """A value as text that begins no line."""
    return value if isinstance(value, Markup) else Markup(escape(str(value)))  # noqa: S704


def _prose(text: str) -> Markup:
    """Sentences of a paper's file: they keep the ends of their lines, and the names that are set as code."""
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
    """A text as code, unless it would end the code or a cell."""
    fits = text.strip() and text.isprintable() and not set(text) & set("`|")
    return Markup(f"`{text}`") if fits else _text(text)  # noqa: S704


def _verbatim(text: str) -> Markup:
    """Lines as a block of code."""
    return Markup("\n".join(f"    {line}" for line in text.splitlines()))  # noqa: S704


def anchor(text: str) -> Markup:
    """A name as a link to it has it."""
    return Markup(re.sub(r"[^\w.-]+", "-", text))  # noqa: S704


def _cells(values: Iterable[object]) -> Markup:
    """A row of a table."""
    return Markup(table_row(ABSENT if value is None else inline(value) for value in values))  # noqa: S704


def html_page(markdown: str, title: str, pictures: Mapping[str, str]) -> str:
    """Our Markdown as a page of HTML with everything in it.

    Args:
        markdown: where it has an image it names one of the pictures, or a class of the style sheet.
        title: of the page.
        pictures: SVG elements by their names.
    """
    # everything that our templates do not use stays text
    parser = MarkdownIt("zero", {"html": False}).enable(list(_RULES))
    parser.block.ruler.before("paragraph", "tags", _tags)
    parser.core.ruler.push("figures", _figures)
    parser.add_render_rule("image", _image)
    body = Markup(parser.render(markdown, {"pictures": pictures}))  # noqa: S704 - it has escaped all text
    shell = templates({}).overlay(finalize=None).get_template("page.html.j2")
    version = installed_version() or "not installed"
    return shell.render(title=title, body=body, version=version, machine=machine())


def _tags(state: StateBlock, start: int, _: int, silent: bool) -> bool:
    """Anchors begin sections, and details are what they are in HTML."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    match = None if state.is_code_block(start) else _TAGS.fullmatch(line)
    if match is None or silent:
        return match is not None
    state.line = start + 1
    token = state.push("html_block", "", 0)
    token.content = match[2] or f'</section>\n<section id="{match[1]}">\n'
    return True


def _figures(state: StateCore) -> None:
    """Paragraphs of pictures alone are rows of figures, which HTML has in no paragraph."""
    for start, line, end in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        kinds = {child.type for child in line.children or ()}
        if start.type == "paragraph_open" and kinds <= {"image", "softbreak"}:
            start.tag = end.tag = "div"
            start.attrSet("class", "pictures")


def _image(
    self: RendererHTML, tokens: Sequence[Token], number: int, options: OptionsDict, env: EnvType
) -> str:
    """A picture with its caption, or a badge."""
    token = tokens[number]
    text = escapeHtml(self.renderInlineAsText(token.children, options, env))
    name = str(token.attrs["src"])
    if name in env["pictures"]:
        return f"<figure>{env['pictures'][name]}<figcaption>{text}</figcaption></figure>"
    return f'<span class="badge {escapeHtml(name)}">{text}</span>'
