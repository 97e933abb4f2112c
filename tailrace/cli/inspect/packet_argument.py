# SPDX-License-Identifier: Apache-2.0
"""The packet argument of the command line: hexadecimal digits, a capture file, or a Scapy expression.

Scapy expressions are parsed, never evaluated: layers with keyword arguments, joined by `/`, and strings.
"""

from __future__ import annotations

import ast
import binascii
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tailrace.codec.captures import CaptureError, packets_of
from tailrace.spec import SpecError
from tailrace.spec.errors import FileError
from tailrace.spec.files import bytes_of

if TYPE_CHECKING:
    from scapy.packet import Packet

MOST_PACKETS = 1000
"""Limit of the number of packets in a file."""

MOST_LAYERS = 64
"""Limit of the number of layers in a packet: for each layer, Scapy copies the whole packet."""

_MOST_CHARACTERS = 200_000
_HEX = re.compile(r"(0x)?(?P<digits>[0-9A-Fa-f:\s]+)")
_VALUES = "a number, a string, bytes, a list, or layers such as IP()/UDP()"
_INPUT_FORMATS = "base 16, a .pcap file, or an expression such as 'Ether()/IP(dst=\"10.0.0.1\")/UDP()'"


def read_packets(text: str) -> list[bytes]:
    """The packet of an argument, or all packets of a capture file, in order.

    Raises:
        SpecError: the argument has none of the formats, or the file has no packets.
    """
    if len(text) > _MOST_CHARACTERS:
        raise SpecError(f"PACKET: longer than {_MOST_CHARACTERS} characters")
    match = _HEX.fullmatch(text)
    if match is not None:
        try:
            return [binascii.unhexlify(re.sub(r"[:\s]", "", match["digits"]))]
        except binascii.Error:
            raise SpecError(f"PACKET {text[:40]}: an odd number of digits in base 16") from None
    if text.endswith((".pcap", ".pcapng", ".cap")):
        frames = list(_of_file(Path(text)))
        if not frames:
            # "": no line in the file
            raise FileError(Path(text), "", "a capture without packets")
        return frames
    return [_of_expression(text)]


def _of_file(path: Path) -> Iterator[bytes]:
    try:
        for index, data in enumerate(packets_of(bytes_of(path))):
            if index >= MOST_PACKETS:
                raise FileError(path, "", f"more than {MOST_PACKETS} packets")
            yield data
    except CaptureError as error:
        raise FileError(path, "", str(error)) from None


def _of_expression(text: str) -> bytes:
    from scapy.packet import Packet

    try:
        tree = ast.parse(text.strip(), mode="eval").body
        made = _packet(tree, _layers())
        return bytes(made if isinstance(made, Packet) else _as_bytes(made))
    except (SyntaxError, RecursionError, MemoryError):
        raise SpecError(f"PACKET {text[:60]!r}: expected {_INPUT_FORMATS}") from None
    except SpecError:
        raise
    except Exception as error:  # noqa: BLE001 - Scapy raises various errors for bad values
        raise SpecError(f"PACKET {text[:60]!r}: {type(error).__name__}: {error}") from None


def _layers() -> dict[str, Callable[..., Packet]]:
    import logging

    from scapy.config import conf
    from scapy.layers import inet, inet6, l2, vxlan  # noqa: F401 - importing registers the layers

    # Scapy warns if this machine has no route to an address of the packet, which is irrelevant here
    logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
    return {layer.__name__: layer for layer in conf.layers}


def _packet(node: ast.expr, layers: dict[str, Callable[..., Packet]]) -> Any:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        # `/` associates to the left: the chain is read from its end in a loop, without recursion
        parts = [node.right]
        rest: ast.expr = node.left
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Div):
            parts.append(rest.right)
            rest = rest.left
            if len(parts) >= MOST_LAYERS:
                raise SpecError(f"PACKET: more than {MOST_LAYERS} layers")
        made = _packet(rest, layers)
        for part in reversed(parts):
            made = made / _packet(part, layers)
        return made
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        layer = layers.get(node.func.id)
        if layer is None:
            raise SpecError(f"PACKET: no layer {node.func.id[:40]!r} in Scapy")
        if node.args or any(keyword.arg is None for keyword in node.keywords):
            raise SpecError(f"PACKET: {node.func.id}: expected FIELD=VALUE")
        return layer(**{str(keyword.arg): _value(keyword.value, layers) for keyword in node.keywords})
    return _value(node, layers)


def _value(node: ast.expr, layers: dict[str, Callable[..., Packet]]) -> Any:
    """A value: a number, a string, a list of values, or a packet; `*` repeats a string or bytes."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.List | ast.Tuple):
        values = [_value(item, layers) for item in node.elts]
        return values if isinstance(node, ast.List) else tuple(values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) and isinstance(node.left, ast.Constant):
        times, part = _number(node.right), _as_bytes(node.left.value)
        if times * len(part) > _MOST_CHARACTERS:
            raise SpecError(f"PACKET: a string of more than {_MOST_CHARACTERS} bytes")
        return part * times
    if isinstance(node, ast.Call | ast.BinOp):
        return (
            _packet(node, layers)
            if not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Div)
            else _refuse(node)
        )
    return _refuse(node)


def _refuse(node: ast.expr) -> Any:
    raise SpecError(f"PACKET: {ast.unparse(node)[:40]!r} is no value; expected {_VALUES}")


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    return int(_refuse(node))


def _as_bytes(value: object) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise SpecError(f"PACKET: expected {_INPUT_FORMATS}")
