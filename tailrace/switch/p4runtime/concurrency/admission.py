# SPDX-License-Identifier: Apache-2.0
"""Room for the requests that are being handled or wait."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from tailrace.p4rt.status import exhausted
from tailrace.switch.p4runtime.memory import ELEMENT

MAX_REQUEST_BYTES = 256 << 20
"""Bytes of all requests under way: their octets, of which one may have 36 MiB, and their elements."""


class AdmissionControl:
    """Bytes of the requests that are being handled or wait."""

    def __init__(self) -> None:
        self._bytes = 0

    @contextlib.contextmanager
    def admit(self, octets: int) -> Iterator[Callable[[int], None]]:
        """Counts a request for as long as it takes; gives what is told how many elements it has by now.

        Raises:
            P4RtError: RESOURCE_EXHAUSTED: too many others are there. What is given raises it, too.
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
