# SPDX-License-Identifier: Apache-2.0
"""What is wrong with words that a user gave.

SpecError            a word, key or value that cannot be used
└── UnitError        a text that is no such quantity
"""

from __future__ import annotations


class SpecError(ValueError):
    """Input that cannot be used; its text is one line for the user, who gets exit status 2."""


class UnitError(SpecError):
    """A text that is no such quantity."""
