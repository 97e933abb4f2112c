# SPDX-License-Identifier: Apache-2.0
"""BMv2's Thrift server as the harness uses it: waited for after a start, errors name the switch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from fabric_errors import FabricError

from tailrace.bmv2.thrift import ThriftClient

START_S = 5.0
"""The Thrift server starts a little after the P4Runtime server."""

_POLL_S = 0.05


@contextmanager
def thrift(port: int, name: str) -> Iterator[ThriftClient]:
    """A connection to one simple_switch_grpc in this network namespace. `name`: the switch's, for messages.

    Raises:
        FabricError: the server does not answer, or refuses what is asked of it inside the context.
    """
    try:
        with _connect(port) as client:
            yield client
    except OSError as error:
        raise FabricError(f"{name}: {error.strerror or error}") from error


def _connect(port: int) -> ThriftClient:
    deadline = time.monotonic() + START_S
    while True:
        try:
            return ThriftClient(port)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_POLL_S)
