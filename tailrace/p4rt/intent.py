# SPDX-License-Identifier: Apache-2.0
"""The intended state of a switch."""

from __future__ import annotations

from dataclasses import dataclass

from finsy.p4entity import P4Entity


@dataclass(frozen=True, slots=True)
class SwitchIntent:
    """A program and immutable entities, in the order in which they are written.

    Default actions of tables without a key are the configuration.
    """

    switch: str
    program: str
    entities: tuple[P4Entity, ...]
