# SPDX-License-Identifier: Apache-2.0
"""The intended state of a switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tailrace.p4rt.entities import P4Entity

if TYPE_CHECKING:
    from tailrace.p4rt.entry_files import Updates


class SwitchIntent(msgspec.Struct, frozen=True):
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
