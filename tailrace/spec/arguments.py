# SPDX-License-Identifier: Apache-2.0
"""Command lines of the programs that are not `tailrace` itself."""

from __future__ import annotations

import argparse
from typing import NoReturn

from tailrace.spec.text import one_line


class ArgumentParser(argparse.ArgumentParser):
    """A parser that tells what is wrong in one line and ends with exit status 2, as `tailrace` does."""

    def error(self, message: str) -> NoReturn:
        """Ends the process."""
        self.exit(2, f"{self.prog}: {one_line(message)} (see --help)\n")
