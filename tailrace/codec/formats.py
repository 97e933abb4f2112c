# SPDX-License-Identifier: Apache-2.0
"""The formats of headers as data. They are read from the Scapy layers (codec/layers) once, and kept in the
build cache under a hash of the layers' sources: importing Scapy takes longer than a small run.
"""

from __future__ import annotations

import functools
import hashlib
from importlib.util import find_spec
from pathlib import Path

import msgspec

from tailrace.cbuild.memoized import memoized

_READER = (Path(__file__), Path(__file__).with_name("scapy_formats.py"))
_LAYERS = Path(__file__).with_name("layers")
_SCAPY = ("contrib/mac_control.py", "contrib/roce.py", "layers/inet.py", "layers/l2.py")
"""The files of Scapy that define its layers used here."""

ROCE = "Ether/IP/UDP/BTH"
SHIMMED = "Ether/IP/UDP/NicShim/BTH"
NIC_ACK = "Ether/IP/UDP/NicAck"
STACKS = (ROCE, SHIMMED, NIC_ACK)
"""The stacks of headers that NICs send."""


class Formats(msgspec.Struct, frozen=True):
    """The formats of headers.

    fields: for each layer, by its class name, the names and widths in bits of its fields, except lists and
        trailers
    defaults: for each of `STACKS`, its bytes if every field has its default; trailers follow them
    """

    fields: dict[str, list[tuple[str, int]]]
    defaults: dict[str, bytes]


@functools.cache
def formats() -> Formats:
    """The formats of all layers that the codec and the virtual network use."""
    return msgspec.json.decode(memoized("formats", (_digest(),), _read), type=Formats)


def _read() -> bytes:
    from tailrace.codec.scapy_formats import read_formats

    return msgspec.json.encode(read_formats())


def _digest() -> str:
    """A hash of the layers' sources."""
    spec = find_spec("scapy")
    assert spec is not None and spec.origin is not None
    scapy = Path(spec.origin).parent
    digest = hashlib.sha256()
    for path in (*_READER, *sorted(_LAYERS.glob("*.py")), *(scapy / name for name in _SCAPY)):
        digest.update(path.read_bytes())
    return digest.hexdigest()
