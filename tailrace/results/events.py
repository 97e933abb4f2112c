# SPDX-License-Identifier: Apache-2.0
"""The event log of a run, events.jsonl: one JSON object a line, in the order in which things happened."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tailrace.p4rt.events import Event, event_of, structured
from tailrace.spec.errors import FileError
from tailrace.spec.files import text_of

EVENTS = "events.jsonl"


def write_events(events: Sequence[Event], folder: Path) -> None:
    """Writes the log into a folder; none where nothing happened."""
    if events:
        lines = "".join(json.dumps(structured(event)) + "\n" for event in events)
        (folder / EVENTS).write_text(lines, "utf-8")


def read_events(folder: Path) -> tuple[Event, ...]:
    """What `write_events` wrote into a folder.

    Raises:
        FileError: the file is not what was written.
    """
    path = folder / EVENTS
    if not path.exists():
        return ()
    lines = text_of(path).splitlines()
    try:
        return tuple(event_of(json.loads(line)) for line in lines)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FileError(path, "", "no log of events") from error
