# SPDX-License-Identifier: Apache-2.0
"""`tailrace shell`: p4runtime-shell on a running switch."""

from __future__ import annotations

import os
import site
import sys
from argparse import Namespace
from pathlib import Path

from tailrace.cbuild.artifacts import ROOT
from tailrace.cli.arguments import command
from tailrace.cli.options import ELECTION_ID, SOURCE, SWITCH

VENV = ".venv-ptf"
_USER = Path(site.getuserbase()) / "share" / "tailrace"
ROOTS = (ROOT, Path(sys.prefix).parent if sys.prefix != sys.base_prefix else _USER)
"""Folders that may contain VENV: that of the sources, where `make setup` creates it, and that of the virtual
environment or user in which `tailrace` is installed."""

_MODULE, _PACKAGE = "p4runtime_sh", "p4runtime-shell==0.0.6"


@command(SWITCH, ELECTION_ID, SOURCE)
def shell(args: Namespace) -> None:
    """Open p4runtime-shell on a switch. It can read while a controller runs; to write, see --election-id.

    The shell reads P4Info from the switch; it pushes no program, so tables stay as they are.

        tailrace shell leaf1
    """
    from tailrace.cli.inspect.network import find
    from tailrace.spec import SpecError

    if args.p4info is not None:
        raise SpecError("--p4info: p4runtime-shell takes P4Info only from the switch; leave it out")
    connection = find(args).connection_to(args.switch)
    connection.p4info()  # reports errors in one line; the shell would show a traceback
    python = find_python()
    argv = [str(python), "-m", _MODULE, "--grpc-addr", connection.address]
    argv += ["--device-id", str(connection.device_id), "--election-id", f"0,{args.election_id}"]
    argv += _tls_options(args)
    sys.stdout.flush()
    os.execv(argv[0], argv)  # noqa: S606 - no shell takes part


def _tls_options(args: Namespace) -> list[str]:
    files = {"--cacert": args.ca, "--cert": args.cert, "--private-key": args.key}
    argv = [
        argument for option, path in files.items() if path is not None for argument in (option, str(path))
    ]
    return ["--ssl", *argv] if argv else []


def find_python() -> Path:
    """The Python of the environment that has p4runtime-shell.

    Raises:
        FailedError: there is none.
    """
    from tailrace.cli.errors import FailedError

    for root in ROOTS:
        python = root / VENV / "bin" / "python"
        if python.is_file() and any((root / VENV).glob(f"lib/python*/site-packages/{_MODULE}")):
            return python
    if (ROOTS[0] / "Makefile").is_file():
        raise FailedError(
            f"p4runtime-shell is not installed: no {VENV} with it in {ROOTS[0]}; run `make setup`"
        )
    place = ROOTS[-1] / VENV
    raise FailedError(
        "p4runtime-shell is not installed; it needs a separate environment: "
        f"python3 -m venv {place} && {place}/bin/pip install {_PACKAGE}"
    )
