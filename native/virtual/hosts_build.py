# SPDX-License-Identifier: Apache-2.0
"""Compiles the NICs' algorithms with mypyc into the cache, where `hosts` finds them.

    python -m native.virtual.hosts_build

`hosts.compiled` says which modules are compiled and where a set of them belongs; a set is named by the hash
of its sources and by the interpreter. Compiled or not, NICs do exactly the same.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hosts import compiled
from native.cc import BuildError, cache_root, compiler

TOOLS = ("mypy", "setuptools")
STAMP = "mypy.txt"
_PACKAGE = "hosts"


def tools_version() -> str:
    """What compiles: mypy and its version.

    Raises:
        BuildError: mypy or setuptools is not installed.
    """
    for tool in TOOLS:
        try:
            importlib.metadata.version(tool)
        except importlib.metadata.PackageNotFoundError:
            raise BuildError(f"compiling the NICs takes {' and '.join(TOOLS)}: {tool} is missing") from None
    return f"mypy {importlib.metadata.version('mypy')}\n"


def build(cache: Path | None = None) -> Path:
    """The folder of the compiled modules, made unless it is there; that takes half a minute.

    Args:
        cache: instead of `native.cc.cache_root()`.

    Raises:
        BuildError: a tool is missing or failed, or the cache cannot be written.
    """
    folder = compiled.folder(cache or cache_root())
    version = tools_version()
    if _stamp(folder) == version:
        return folder
    compiler()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=folder.parent, prefix=".hosts-", ignore_cleanup_errors=True)
    except OSError as e:
        raise BuildError(f"cannot write the cache {folder.parent}: {e.strerror}") from None
    with scratch:
        made = _compile(Path(scratch.name))
        (made / STAMP).write_text(version)
        # mypyc's packages look for their modules below a folder that has the name of the package they are in
        (made / _PACKAGE).symlink_to(".")
        _put(made, folder, version)
    return folder


def _stamp(folder: Path) -> str | None:
    try:
        return (folder / STAMP).read_text()
    except OSError:
        return None


def _compile(scratch: Path) -> Path:
    """Runs mypyc in a process of its own, which needs much memory; the folder with what it made."""
    root = Path(compiled.__file__).resolve().parents[1]
    command = [sys.executable, "-m", "native.virtual.hosts_setup", str(scratch), compiled.GROUP]
    command += [str(path.resolve().relative_to(root)) for path in compiled.sources()]
    run = subprocess.run(
        command,
        cwd=root,
        env={**os.environ, "TAILRACE_HOSTS": "interpreted"},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        lines = (run.stderr + run.stdout).strip().splitlines() or [f"status {run.returncode}"]
        first = next((line for line in lines if "error:" in line), lines[-1])
        raise BuildError(f"mypyc failed on the NICs: {first.strip()}")
    return scratch / "lib" / _PACKAGE


def _put(made: Path, folder: Path, version: str) -> None:
    """Moves a set to its place, at once; another process may have been faster, or have left an old one."""
    try:
        made.rename(folder)
        return
    except OSError:
        if _stamp(folder) == version:
            return
    shutil.rmtree(folder, ignore_errors=True)
    made.rename(folder)


def main(arguments: list[str] | None = None) -> int:
    """The command; prints the folder."""
    parser = argparse.ArgumentParser(prog="hosts_build", description="Compiles the NICs with mypyc.")
    parser.add_argument("--cache", type=Path, help="folder for what is compiled (default: the usual cache)")
    try:
        folder = build(parser.parse_args(arguments).cache)
    except BuildError as e:
        sys.stderr.write(f"hosts_build: {e}\n")
        return 1
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
