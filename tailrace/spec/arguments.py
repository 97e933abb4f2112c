# SPDX-License-Identifier: Apache-2.0
"""Command lines: the parser of every program, whose errors are one line."""

from __future__ import annotations

import argparse
from typing import NoReturn

from tailrace.spec.text import one_line


class ArgumentParser(argparse.ArgumentParser):
    """A parser that reports errors in one line and exits with status 2, as `tailrace` does."""

    def error(self, message: str) -> NoReturn:
        """Exits with status 2."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see --help)\n")
