# SPDX-License-Identifier: Apache-2.0
"""The error of the virtual network."""

from __future__ import annotations

from tailrace.spec.errors import Error


class NetworkError(Error):
    """The network cannot do what was asked; the message is one line for the user."""
