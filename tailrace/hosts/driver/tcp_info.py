# SPDX-License-Identifier: Apache-2.0
"""What Linux tells of one of its TCP connections: struct tcp_info of linux/tcp.h, which grows at its end.

A kernel that is older than a field answers fewer bytes: then nobody has counted it.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

_ANSWER_BYTES = 512
_WORD = struct.Struct("=I")
_HALF = struct.Struct("=H")
_TOTAL_RETRANS = 100
_DATA_SEGS_IN = 152
_DATA_SEGS_OUT = 156
_OUT_OF_ORDER = 224  # from Linux 5.4 on
_TOTAL_RTO = 240  # from Linux 6.7 on


@dataclass(frozen=True, slots=True)
class TcpInfo:
    """Counters of one end; None: this kernel has none.

    retransmitted: segments sent again.
    data_in, data_out: segments with payload that came in or went out, those sent again included.
    out_of_order: segments that came in beyond the next byte expected.
    timeouts: retransmission timeouts.
    """

    retransmitted: int | None = None
    data_in: int | None = None
    data_out: int | None = None
    out_of_order: int | None = None
    timeouts: int | None = None


NOTHING = TcpInfo()


def read(connection: socket.socket) -> TcpInfo:
    """The counters of a connection."""
    answer = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ANSWER_BYTES)
    return decode(answer)


def decode(answer: bytes) -> TcpInfo:
    """The counters in an answer of the kernel, however long it is."""

    def field(form: struct.Struct, offset: int) -> int | None:
        if len(answer) < offset + form.size:
            return None
        value: int = form.unpack_from(answer, offset)[0]
        return value

    return TcpInfo(
        retransmitted=field(_WORD, _TOTAL_RETRANS),
        data_in=field(_WORD, _DATA_SEGS_IN),
        data_out=field(_WORD, _DATA_SEGS_OUT),
        out_of_order=field(_WORD, _OUT_OF_ORDER),
        timeouts=field(_HALF, _TOTAL_RTO),
    )
