# SPDX-License-Identifier: Apache-2.0
"""Runs mypyc and the C compiler: python -m tailrace.hosts.build_setup SCRATCH GROUP SOURCE...

Started by `tailrace.hosts.build`, in the folder that contains the package. The output is in SCRATCH/lib: the
modules, and the shared library GROUP__mypyc that all of them use.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Distribution

# Here mypy follows only imports of the NICs' modules. Otherwise it would check every library that the package
# uses. `make lint` checks the types of all modules.
MYPY_CONFIG = """\
[mypy]
namespace_packages = True
explicit_package_bases = True
follow_imports = skip
ignore_missing_imports = True
[mypy-tailrace.hosts.*,tailrace.codec.*,tailrace.spec.constants,msgspec.*]
follow_imports = normal
"""


def compile_modules(scratch: Path, group: str, sources: list[str]) -> None:
    """Compiles modules into SCRATCH/lib; exits with a message if that fails."""
    config = scratch / "mypy.ini"
    config.write_text(MYPY_CONFIG)
    options = [f"--config-file={config}", f"--cache-dir={scratch / 'mypy'}"]
    # without debug information, so that each run verifies a smaller file
    extensions = mypycify(
        [*options, *sources], target_dir=str(scratch / "c"), group_name=group, debug_level="0"
    )
    distribution = Distribution({"name": "hosts-compiled", "ext_modules": extensions})
    command = distribution.get_command_obj("build_ext")
    command.build_lib, command.build_temp = str(scratch / "lib"), str(scratch / "objects")
    command.ensure_finalized()
    command.run()


if __name__ == "__main__":
    compile_modules(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
