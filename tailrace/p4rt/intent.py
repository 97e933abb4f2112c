# SPDX-License-Identifier: Apache-2.0
"""The intended state of a switch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from finsy.p4entity import P4Entity

if TYPE_CHECKING:
    from tailrace.p4rt.entry_files import Updates


@dataclass(frozen=True, slots=True)
class SwitchIntent:
    """The program that a switch should run, and the immutable entities that it should have, in the order of
    writing.

    Configuration is given as default actions of tables without a key.

    updates: None, or the updates of files of entries. They are written once, in their order, and never
        reconciled; `entities` is empty then.
    """

    switch: str
    program: str
    entities: tuple[P4Entity, ...]
    updates: Updates | None = None
