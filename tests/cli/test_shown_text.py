# SPDX-License-Identifier: Apache-2.0
"""Names and values come from programs of others: no form of output hands a terminal anything to obey."""

from __future__ import annotations

import io
import json

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tailrace.cli.options import OutputFormat
from tailrace.cli.output import render
from tailrace.tables.listing import Column, Listing, Row
from tailrace.tables.table import TextTable, styled

ANY = st.text(st.characters(), max_size=12)


@settings(max_examples=60)
@given(name=ANY, texts=st.lists(ANY, min_size=1, max_size=4))
def test_every_form_shows_and_does_nothing(name: str, texts: list[str]) -> None:
    """In cells, in names within cells and in names of columns; JSON says the same."""
    columns = (Column("table", key=True), Column(name or "x"))
    rows: tuple[Row, ...] = tuple({"table": text, name or "x": {text: text}} for text in texts)
    listing = Listing("tables", columns, rows, title=name, caption=tuple(texts))
    for form in OutputFormat:
        for at in (None, "12:00"):
            text = render(listing, form, at)
            text.encode()
            assert text.replace("\n", "").isprintable(), form
    assert [row["table"] for row in json.loads(render(listing, OutputFormat.JSON))] == texts
    out = io.StringIO()
    Console(file=out, width=80, color_system=None).print(styled(TextTable(listing, 80).lines()))
    assert out.getvalue().replace("\n", "").isprintable()
