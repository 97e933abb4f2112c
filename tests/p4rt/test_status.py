# SPDX-License-Identifier: Apache-2.0
"""Errors of a batch, from the server's side of gRPC's trailers to the client's."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.status import DETAILS, Code, P4RtError, batch_status, refusals

FAILURES = st.builds(P4RtError, st.sampled_from([code for code in Code if code]), st.text(max_size=400))


@given(st.lists(st.none() | FAILURES, max_size=20), st.lists(st.tuples(st.text(), st.binary() | st.text())))
def test_there_and_back(batch: list[P4RtError | None], others: list[tuple[str, str | bytes]]) -> None:
    """Which elements failed, with code and message, whatever else is in the trailers."""
    others = [(key, value) for key, value in others if key != DETAILS]
    packed = batch_status("failed", batch).SerializeToString()
    found = refusals([*others, (DETAILS, packed), *others])
    expected = {i: (error.code, error.message) for i, error in enumerate(batch) if error is not None}
    assert {i: (error.code, error.message) for i, error in found.items()} == expected


@given(st.binary(max_size=200))
def test_any_bytes_are_no_traceback(packed: bytes) -> None:
    """Servers of others may put anything there."""
    assert all(isinstance(error, P4RtError) for error in refusals([(DETAILS, packed)]).values())


def test_codes_that_nobody_knows() -> None:
    """A code of another specification is told as unknown."""
    status = batch_status("failed", [P4RtError(Code.ABORTED, "why")])
    inner = bytes.fromhex("080a")  # canonical_code = 10
    changed = status.SerializeToString().replace(inner, bytes.fromhex("0863"))
    assert refusals([(DETAILS, changed)])[0].code == Code.UNKNOWN
