# SPDX-License-Identifier: Apache-2.0
"""The words of the command line: quantities with units, and name:key=value,key=value."""

from tailrace.words.errors import SpecError, UnitError
from tailrace.words.words import Options, Words, parse

__all__ = ["Options", "SpecError", "UnitError", "Words", "parse"]
