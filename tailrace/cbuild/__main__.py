# SPDX-License-Identifier: Apache-2.0
"""python -m tailrace.cbuild: prints which build cache and which confinement this machine has."""

from __future__ import annotations

import sys
from pathlib import Path

from tailrace.cbuild import cache, confined
from tailrace.cbuild.errors import BuildError

_PROBE_ENTRY = "toolchain-" + "0" * 32


def main() -> int:
    """Prints a line for the cache and one for the confinement. Returns 1 if no cache can be used, else 0."""
    try:
        folder = cache.open_folder()
        sys.stdout.write(f"cache: {folder.path}\n")
        with folder.builder(_PROBE_ENTRY) as scratch:
            run = confined.run(["/bin/true"], scratch, confined.readable(Path("/bin/true")))
    except BuildError as error:
        sys.stderr.write(f"toolchain: {error}\n")
        return 1
    sys.stdout.write(f"compilers are confined by: {', '.join(run.active)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
