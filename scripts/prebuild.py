# SPDX-License-Identifier: Apache-2.0
"""Compiles what a binary wheel contains: the switch's core, the codec, the network in virtual time, the
committed P4 programs and the NICs. setup.py calls it on its copy of the package, for the folder `prebuilt`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tailrace.cbuild import cache, cc
from tailrace.cbuild.artifacts import P4_BUILD, PREBUILT
from tailrace.hosts import build, compiled
from tailrace.sim.network.build import extension
from tailrace.switch.compiler import load_program
from tailrace.switch.daemon.ports import io_library


def compile_program(path: Path) -> None:
    """Compiles a P4 program, with and without trace hooks."""
    load_program(path.read_bytes(), source=path.name).tracing_build()


def main() -> None:
    """Compiles for every processor of this architecture, and strips what differs from build to build."""
    shutil.rmtree(PREBUILT, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {cache.VARIABLE: folder, cc.PORTABLE: "1", compiled.VARIABLE: compiled.INTERPRETED}
        io_library()
        extension()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_program, sorted(P4_BUILD.glob("*.json"))))
        nics = build.build()
        shutil.copytree(nics, PREBUILT / nics.name, ignore=shutil.ignore_patterns(cache.SEAL))
        for path in Path(folder).glob("*.so"):
            # without the compiler's identity, and without the hash of a file in a cache
            name, content = path.stem.rpartition("-")[0], cache.open_folder().content(path.name)
            assert content is not None
            (PREBUILT / f"{name}.so").write_bytes(content)
    # debugging information and build ids depend on the folder of the build
    strip = ("strip", "--strip-debug", "--remove-section=.note.gnu.build-id")
    subprocess.run([*strip, *PREBUILT.rglob("*.so")], check=True)


if __name__ == "__main__":
    main()
