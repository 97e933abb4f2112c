# SPDX-License-Identifier: Apache-2.0
"""The command in a process of its own that need not import it anew: a fork of one that has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path

from tailrace.cli.main import main

_CONTEXT = get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.forked", "tailrace.api.run", "tailrace.cli.experiment_command"])
TIMEOUT_S = 300


def command(words: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """What the command says and returns in a folder; for tests of that, and of nothing that a start decides."""
    out, err = folder / "command.out", folder / "command.err"
    process = _CONTEXT.Process(target=_run, args=([str(word) for word in words], folder, out, err))
    process.start()
    process.join(TIMEOUT_S)
    assert process.exitcode is not None, "it does not end"
    texts = [path.read_text("utf-8") for path in (out, err)]
    for path in (out, err):
        path.unlink()
    return subprocess.CompletedProcess(["tailrace", *map(str, words)], process.exitcode, *texts)


def _run(words: list[str], folder: Path, out: Path, err: Path) -> None:
    os.chdir(folder)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests that run below nohup ignore it
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    sys.exit(main(words))
