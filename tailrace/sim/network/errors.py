# SPDX-License-Identifier: Apache-2.0
"""The error of the virtual network."""

from __future__ import annotations

from tailrace.spec.errors import Error


class NetworkError(Error):
    """Something that the network was asked for cannot be done; one line for the user."""
