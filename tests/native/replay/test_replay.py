# SPDX-License-Identifier: Apache-2.0
"""A saved trace holds all that the packet needs: a switch with nothing else does the same with it."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from tailrace.native.replay import again, document
from tailrace.native.replay.document import outcome
from tests.long import some
from tests.native.replay.switches import PORTS, Source
from tests.native.trace.test_trying import NAMES, frames


@pytest.mark.parametrize("name", some(NAMES, 3))
def test_a_saved_trace_is_repeated(name: str, tmp_path: Path) -> None:
    """With entries that come as packets miss: through the file, on a fresh switch, the same frames and drops."""
    chooser = random.Random(len(name))
    packets = frames(chooser)
    with closing(Source(name, seed=len(name))) as source:
        for number in range(40):
            tried = source.tried(chooser.choice(PORTS), next(packets))
            if number % 2:
                path = tmp_path / "trace.json"
                path.write_text(document.as_json(source.saved(tried)))
                saved = document.read(path)
                found = outcome(again.run(saved))
                assert list(again.differences(saved.document.expected, found, reasons=True)) == []
                assert saved.document.expected == outcome(tried.trace)
            source.enter(tried.trace.steps)
