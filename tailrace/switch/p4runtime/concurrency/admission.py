# SPDX-License-Identifier: Apache-2.0
"""Admission control: the memory of all requests under way is bounded."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from tailrace.p4rt.status import exhausted
from tailrace.switch.p4runtime.memory import ELEMENT

MAX_REQUEST_BYTES = 256 << 20
"""Bytes of all requests under way, with their parsed elements; a single request has up to 36 MiB."""


class AdmissionControl:
    """The memory of the requests under way."""

    def __init__(self) -> None:
        self._bytes = 0

    @contextlib.contextmanager
    def admit(self, octets: int) -> Iterator[Callable[[int], None]]:
        """Counts a request within; yields a function that takes the number of elements parsed so far.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: other requests take too much; the function raises it, too.
        """
        admitted = 0

        def hold(more: int) -> None:
            nonlocal admitted
            queued = self._bytes - admitted
            if queued and self._bytes + more > MAX_REQUEST_BYTES:
                raise exhausted(f"requests of {queued} bytes are under way; the limit is {MAX_REQUEST_BYTES}")
            self._bytes += more
            admitted += more

        hold(octets)
        try:
            yield lambda elements: hold(octets + ELEMENT * elements - admitted)
        finally:
            self._bytes -= admitted
