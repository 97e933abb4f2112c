# SPDX-License-Identifier: Apache-2.0
"""Errors of a batch, from the server's side of gRPC's trailers to the client's."""

from __future__ import annotations

from collections.abc import Iterable
from weakref import ref

from finsy.proto import rpc_status
from hypothesis import given
from hypothesis import strategies as st

from tailrace.p4rt.status import DETAILS, BatchStatus, Code, P4RtError, refusals

FAILURES = st.builds(P4RtError, st.sampled_from([code for code in Code if code]), st.text(max_size=400))


def status_of(batch: Iterable[P4RtError | None], most_bytes: int | None = None) -> BatchStatus:
    status = BatchStatus(most_bytes)
    status.extend(batch)
    return status


@given(st.lists(st.none() | FAILURES, max_size=20), st.lists(st.tuples(st.text(), st.binary() | st.text())))
def test_there_and_back(batch: list[P4RtError | None], trailers: list[tuple[str, str | bytes]]) -> None:
    """Which elements failed, with code and message, whatever else is in the trailers."""
    trailers = [(key, value) for key, value in trailers if key != DETAILS]
    packed = status_of(batch).packed("failed")
    assert packed is not None
    decoded = refusals([*trailers, (DETAILS, packed), *trailers])
    expected = {i: (error.code, error.message) for i, error in enumerate(batch) if error is not None}
    assert {i: (error.code, error.message) for i, error in decoded.items()} == expected


@given(st.binary(max_size=200))
def test_any_bytes_are_no_traceback(packed: bytes) -> None:
    """Servers of others may put anything there."""
    assert all(isinstance(error, P4RtError) for error in refusals([(DETAILS, packed)]).values())


def test_codes_that_nobody_knows() -> None:
    """A code of another specification is told as unknown."""
    status = status_of([P4RtError(Code.ABORTED, "why")]).packed("failed")
    assert status is not None
    inner = bytes.fromhex("080a")  # canonical_code = 10
    changed = status.replace(inner, bytes.fromhex("0863"))
    assert refusals([(DETAILS, changed)])[0].code == Code.UNKNOWN


@given(st.lists(st.none() | FAILURES, max_size=20), st.integers(0, 2000))
def test_details_are_left_out_where_they_are_too_much(batch: list[P4RtError | None], most_bytes: int) -> None:
    """All of them; what failed is counted, and the first of it known."""
    whole, status = status_of(batch), status_of(batch, most_bytes)
    octets = whole.packed("failed")
    assert octets is not None
    assert len(rpc_status.Status.FromString(octets).details) == len(batch)
    assert status.packed("failed") == (octets if len(octets) <= most_bytes else None)
    failed = [(number, error) for number, error in enumerate(batch, 1) if error is not None]
    assert (len(status), status.failures, status.first) == (len(batch), len(failed), next(iter(failed), None))


def test_what_cannot_be_told_is_not_kept() -> None:
    """Of many failures only the first, and their number: an error holds all that it has come through."""
    status = BatchStatus(1000)
    errors = [P4RtError(Code.ABORTED, f"number {number}") for number in range(100)]
    kept = [ref(error) for error in errors]
    status.extend(errors)
    del errors
    assert status.failures == 100 and status.packed("failed") is None
    assert sum(error() is not None for error in kept) <= 2  # one is the last that was told
