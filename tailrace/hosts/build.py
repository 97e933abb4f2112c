# SPDX-License-Identifier: Apache-2.0
"""Compiles the NICs' algorithms with mypyc into the cache, where `hosts` finds them.

    python -m tailrace.hosts.build

`hosts.compiled` defines which modules are compiled and where a set of compiled modules is stored. The name of
a set is a hash of its sources and of the interpreter. Compiled and interpreted NICs behave identically.
"""

from __future__ import annotations

import importlib.metadata
import os
import shlex
import sys
from pathlib import Path

from tailrace.cbuild import confined
from tailrace.cbuild.artifacts import PACKAGE, ROOT
from tailrace.cbuild.cache import Folder, open_folder, root
from tailrace.cbuild.cc import compiler, failure
from tailrace.cbuild.errors import BuildError
from tailrace.hosts import compiled
from tailrace.spec.arguments import ArgumentParser

TOOLS = ("mypy", "setuptools")
STAMP = "mypy.txt"


def tools_version() -> str:
    """Name and version of the compiler, mypy.

    Raises:
        BuildError: mypy or setuptools is not installed.
    """
    for tool in TOOLS:
        try:
            importlib.metadata.version(tool)
        except importlib.metadata.PackageNotFoundError:
            raise BuildError(f"compiling the NICs needs {' and '.join(TOOLS)}: {tool} is missing") from None
    return f"mypy {importlib.metadata.version('mypy')}\n"


def build(cache: Path | None = None) -> Path:
    """The folder of the compiled modules. If it does not exist, compiles them, which takes half a minute.

    Args:
        cache: the cache folder; None: `cbuild.cache.root()`.

    Raises:
        BuildError: a tool is missing or failed, or the cache cannot be written.
    """
    folder = compiled.folder(cache or root())
    version, cache_folder, name = tools_version(), open_folder(folder.parent), folder.name
    if not _is_made(cache_folder, name, version):
        compiler()
        with cache_folder.builder(name) as scratch:
            if not _is_made(cache_folder, name, version):
                made = _compile(cache_folder, scratch)
                (made / STAMP).write_text(version)
                cache_folder.put(name, made)
    return folder


def _is_made(cache_folder: Folder, name: str, version: str) -> bool:
    return cache_folder.is_intact(name) and (cache_folder.path / name / STAMP).read_text() == version


def _compile(cache_folder: Folder, scratch: Path) -> Path:
    """Runs mypyc in another process, because it needs much memory; returns the folder of its output."""
    command = [sys.executable, "-m", "tailrace.hosts.build_setup", str(scratch), compiled.GROUP]
    command += [str(path.relative_to(ROOT)) for path in compiled.sources()]
    # mypy treats its working folder as the project; if this package is in site-packages, that folder also
    # contains mypy's modules, so mypy runs in a new folder
    project = scratch / "project"
    project.mkdir()
    (project / PACKAGE.name).symlink_to(PACKAGE)
    cc, packages = compiler(), [str(Path(path).absolute()) for path in sys.path]
    environment = {"TAILRACE_HOSTS": "interpreted", "PYTHONPATH": os.pathsep.join(packages)}
    environment |= {"CC": shlex.join(cc.argv), "PYTHONDONTWRITEBYTECODE": "1"}
    # the compilers run confined: they may read only these paths
    readable = confined.readable(Path(cc.argv[0]), [ROOT, Path(sys.executable).parent, *packages])
    run = confined.run(command, scratch, readable, cwd=project, more_environment=environment)
    if run.status != 0:
        raise failure("mypyc", "the NICs", cache_folder, run)
    made = scratch / "lib"
    # modules look for their packages below the folder of the shared library: for tailrace/hosts/nic
    for library in (made / PACKAGE.name / "hosts").glob("*.so"):
        library.rename(made / library.name)
    return made


def main(arguments: list[str] | None = None) -> int:
    """Runs the command, which prints the folder; returns the exit status."""
    parser = ArgumentParser(prog="hosts_build", description="Compiles the NICs with mypyc.")
    parser.add_argument("--cache", type=Path, help="folder for compiled modules (default: the usual cache)")
    try:
        folder = build(parser.parse_args(arguments).cache)
    except BuildError as e:
        sys.stderr.write(f"hosts_build: {e}\n")
        return 1
    sys.stdout.write(f"{folder}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
