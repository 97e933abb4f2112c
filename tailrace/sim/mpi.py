# SPDX-License-Identifier: Apache-2.0
"""Ranks (processes that simulate parts of a network) that mpiexec has started, on one machine or many:
`mpiexec -n 4 tailrace run … --ranks mpi`.

Each rank reads the same specs and runs its part; only the first rank writes results and messages. MPI cannot
end one rank and let the others clean up, so a rank that fails sends the reason in place of its next message.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tailrace.sim.network.ranks import RankLostError
from tailrace.spec import SpecError

NAME = "mpi"
"""The value of --ranks that selects MPI, in place of a number of ranks."""


class World:
    """All processes that one `mpiexec` has started, as a `RankTransport`."""

    def __init__(self) -> None:
        """Raises:
        SpecError: mpi4py is not installed, or finds no MPI library.
        """
        try:
            self._comm: Any = importlib.import_module("mpi4py.MPI").COMM_WORLD
        except (ImportError, RuntimeError) as error:
            raise SpecError(
                f"ranks: {NAME} needs mpi4py and an MPI: install tailrace[mpi]: {error}"
            ) from None
        self.rank: int = self._comm.rank
        self.ranks: int = self._comm.size

    def exchange(self, messages: list[bytes]) -> list[bytes]:
        """Sends one message to each rank and returns the messages that all ranks sent here; both by rank.

        Raises:
            RankLostError: another rank has failed; the message says why.
        """
        return self._exchange([("", message) for message in messages])

    def _exchange(self, messages: list[tuple[str, bytes]]) -> list[bytes]:
        received: list[tuple[str, bytes]] = self._comm.alltoall(messages)
        for rank, (failure, _) in enumerate(received):
            if failure and rank != self.rank:
                raise RankLostError(f"rank {rank}: {failure}")
        return [message for _, message in received]

    def agree(self, what: str) -> None:
        """Checks that all ranks call this method with the same string, which describes what they will run.

        Raises:
            SpecError: the strings differ.
        """
        encoded = what.encode()
        for rank, other in enumerate(self.exchange([encoded] * self.ranks)):
            if other != encoded:
                difference = f"rank {rank} has other specs, files or another version of Tailrace"
                raise SpecError(f"ranks: {difference} than rank {self.rank}")

    @contextmanager
    def together(self) -> Iterator[None]:
        """Either all ranks complete the block, or all leave it with an error."""
        try:
            yield
        except RankLostError:
            raise
        except Exception as error:
            with suppress(RankLostError):  # other ranks may have failed, too
                self._exchange([(str(error) or type(error).__name__, b"")] * self.ranks)
            raise
        self.exchange([b""] * self.ranks)
