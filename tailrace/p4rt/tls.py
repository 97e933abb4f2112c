# SPDX-License-Identifier: Apache-2.0
"""TLS files of clients: the trusted authority, and the client's certificate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from finsy import GRPCCredentialsTLS

from tailrace.p4rt.errors import TlsError
from tailrace.spec.files import read_bytes, without_bom

_MOST_BYTES = 1 << 20
"""Maximum size of a file with a certificate chain or key."""


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files.

    ca: the authority that signs the switches' certificates; None: the system's authorities
    cert, key: the client's certificate and key: both, or None for both
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    def credentials(self) -> GRPCCredentialsTLS:
        """Credentials for gRPC.

        Raises:
            TlsError: a file cannot be read, or only one of certificate and key is given.
        """
        if (self.cert is None) != (self.key is None):
            raise TlsError("TLS: a client needs both a certificate and its key; only one of them is given")
        return GRPCCredentialsTLS(cacert=_read(self.ca), cert=_read(self.cert), private_key=_read(self.key))


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    try:
        text = without_bom(read_bytes(path, _MOST_BYTES))
    except OSError as error:
        raise TlsError(f"TLS: {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise TlsError(f"TLS: {path}: {error.reason}") from None
    if b"-----BEGIN " not in text:
        raise TlsError(f"TLS: {path}: not a PEM file")
    return text
