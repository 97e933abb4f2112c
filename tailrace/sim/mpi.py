# SPDX-License-Identifier: Apache-2.0
"""Ranks that mpiexec has started, on one machine or many: `mpiexec -n 4 tailrace run … --ranks mpi`.

Each of them reads the same specs and runs its part; the first alone writes results and messages. MPI
cannot end one rank and let the others tidy up, so a rank that fails says so in place of its next message.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tailrace.sim.network.ranks import RankLostError
from tailrace.spec import SpecError

NAME = "mpi"
"""The word for it where a number of ranks is asked for."""


class World:
    """All processes of an `mpiexec`: a `Transport`."""

    def __init__(self) -> None:
        """Raises:
        SpecError: mpi4py is not there, or finds no MPI.
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
        """Sends each rank one message, and gives what each has sent here; both by rank.

        Raises:
            RankLostError: one of them has failed; the line says why.
        """
        return self._exchange([("", message) for message in messages])

    def _exchange(self, messages: list[tuple[str, bytes]]) -> list[bytes]:
        received: list[tuple[str, bytes]] = self._comm.alltoall(messages)
        for rank, (failure, _) in enumerate(received):
            if failure and rank != self.rank:
                raise RankLostError(f"rank {rank}: {failure}")
        return [message for _, message in received]

    def agree(self, what: str) -> None:
        """Makes sure that all are about to do the same.

        Raises:
            SpecError: they are not.
        """
        encoded = what.encode()
        for rank, other in enumerate(self.exchange([encoded] * self.ranks)):
            if other != encoded:
                whose = f"rank {rank} has other specs, files or another version of Tailrace"
                raise SpecError(f"ranks: {whose} than rank {self.rank}")

    @contextmanager
    def together(self) -> Iterator[None]:
        """All ranks come to the end of the block, or all leave it by an error."""
        try:
            yield
        except RankLostError:
            raise
        except Exception as error:
            with suppress(RankLostError):  # it may not be the only one
                self._exchange([(str(error) or type(error).__name__, b"")] * self.ranks)
            raise
        self.exchange([b""] * self.ranks)
