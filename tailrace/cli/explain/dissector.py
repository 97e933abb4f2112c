# SPDX-License-Identifier: Apache-2.0
"""`tailrace dissector`: a Wireshark dissector of this project's headers."""

from __future__ import annotations

import sys
from argparse import Namespace

from tailrace.cli.arguments import command


@command()
def dissector(_args: Namespace) -> None:
    """Print a Wireshark dissector (Lua) of EtherType 0x88B5 and of the UDP headers of Flowcut's NICs.

    tailrace dissector > tailrace.lua

    tshark -X lua_script:tailrace.lua -r out/pcap/leaf1.pcapng
    """
    from tailrace.codec.dissector import lua

    sys.stdout.write(lua())
