# SPDX-License-Identifier: Apache-2.0
"""What pyproject.toml cannot say: with TAILRACE_BINARIES=1 a wheel contains compiled code, for machines
without a C compiler. It is built without isolation, where Tailrace[compiled] is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

BINARIES = os.environ.get("TAILRACE_BINARIES") == "1"


class BuildBinaries(build_py):
    """Copies the package, then compiles what scripts/prebuild.py lists into the copy."""

    def run(self) -> None:
        """Builds; an error of the compiler ends the build."""
        super().run()
        path = os.pathsep.join(
            [str(Path(self.build_lib).absolute()), *filter(None, [os.environ.get("PYTHONPATH")])]
        )
        subprocess.run(
            [sys.executable, "scripts/prebuild.py"], env={**os.environ, "PYTHONPATH": path}, check=True
        )


class BinaryDistribution(Distribution):
    """A distribution for one version of Python and one platform."""

    def has_ext_modules(self) -> bool:
        """Whether wheels get the tags of an interpreter and a platform."""
        return True


if __name__ == "__main__":
    setup(**({"cmdclass": {"build_py": BuildBinaries}, "distclass": BinaryDistribution} if BINARIES else {}))
