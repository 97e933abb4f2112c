# SPDX-License-Identifier: Apache-2.0
"""`tailrace paths`: the ways from host to host that the switches' entries allow now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cli.complete import complete_host
from cli.options import LookOptions, with_look

if TYPE_CHECKING:
    from topology import Host, Topology


@with_look
def paths(
    *,
    src: Annotated[
        str | None,
        typer.Argument(
            metavar="SRC", help="Host or address; none: every host.", autocompletion=complete_host
        ),
    ] = None,
    dst: Annotated[
        str | None,
        typer.Argument(
            metavar="DST", help="Host or address; none: all others.", autocompletion=complete_host
        ),
    ] = None,
    look: LookOptions,
) -> None:
    """Walk the installed entries from host to host: at every hop the entry, its group and all its ports.

    Exit status 1 when a way ends before its host, goes to another one, or loops.

    tailrace paths h1 h9
    """
    from cli.errors import FailedError
    from cli.look import show
    from cli.network import Network
    from controller.inspect.listing import Listing
    from controller.inspect.paths import Walk, Walker, listing
    from spec import SpecError

    walks: list[Walk] = []

    def read(network: Network) -> Listing:
        topology = network.topology
        if topology is None:
            raise SpecError("paths needs the topology: give --topology, or --run")
        walker = Walker(topology, network.nodes)
        walks[:] = [
            walker.walk(first, last)
            for first in _hosts(topology, src)
            for last in _hosts(topology, dst)
            if first is not last
        ]
        if not walks:
            raise SpecError("SRC and DST are the same host")
        return listing(walks)

    show(look, read)
    problems = [problem for walk in walks for problem in walk.problems]
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise FailedError(problems[0] + more)


def _hosts(topology: Topology, name: str | None) -> list[Host]:
    """The host with a name or an address; all for none."""
    from spec import SpecError

    if name is None:
        return list(topology.hosts)
    for host in topology.hosts:
        if name in {host.name, host.ip}:
            return [host]
    names = [host.name for host in topology.hosts]
    known = ", ".join(names) if len(names) <= 10 else f"{names[0]} to {names[-1]}"
    raise SpecError(f"no host {name!r}; there are {known}")


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("paths", rich_help_panel="Look")(paths)
