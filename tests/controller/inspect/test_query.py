# SPDX-License-Identifier: Apache-2.0
"""In-band queries of a client whose packets are lost."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import Mock

from tailrace.controller.inband import query
from tailrace.p4rt import programs
from tailrace.p4rt.by_name.program import ProgramNames


class LossyClient(query.PrimaryQueryClient):
    """The first round has no response for index 0."""

    def __init__(self, program: ProgramNames) -> None:
        self._program, self._client = program, Mock()
        self.rounds: list[list[int]] = []

    def _collect(self, _reason: object, missing: set[int]) -> Iterator[tuple[int, bytes]]:
        self.rounds.append(sorted(missing))
        lost = {0} if len(self.rounds) == 1 else set()
        yield from ((index, b"") for index in sorted(missing - lost))


def test_an_index_without_a_response_is_asked_again() -> None:
    """Also the first one, 0."""
    client = LossyClient(ProgramNames(programs.load("flowcut").p4info))
    assert query.query_all(client, "leaf1", "READ_FLOWS", [0, 1, 2]) == {0: b"", 1: b"", 2: b""}
    assert client.rounds == [[0, 1, 2], [0]]
