# SPDX-License-Identifier: Apache-2.0
"""What a switch must hold, whoever says so."""

from __future__ import annotations

from dataclasses import dataclass

from finsy.p4entity import P4Entity


@dataclass(frozen=True, slots=True)
class SwitchIntent:
    """A program, and entities in the order in which they are written; nobody may change them any more.

    Default actions of tables without a key hold the configuration.
    """

    switch: str
    program: str
    entities: tuple[P4Entity, ...]
