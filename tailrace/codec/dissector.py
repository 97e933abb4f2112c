# SPDX-License-Identifier: Apache-2.0
"""A Wireshark dissector in Lua, generated from the Scapy layers: EtherType 0x88B5 and Flowcut's UDP headers.

Fields are called tailrace.LAYER.FIELD, such as tailrace.cnm.valid_ticks. What follows a header is dissected
by its `next_type`, or as RoCEv2 after a NIC shim.
"""

from __future__ import annotations

import re
from typing import Any

from scapy.contrib.roce import BTH
from scapy.fields import ByteEnumField, IPField, PacketListField, XIntField, XShortEnumField
from scapy.layers.inet import UDP
from scapy.packet import Packet

from tailrace.codec.layers import local
from tailrace.codec.layers.bth import ROCE_PORT
from tailrace.codec.layers.local import LocalHeader
from tailrace.spec.registry import load_folder

_LAYERS = "tailrace.codec.layers"

_CODE = """\
-- SPDX-License-Identifier: Apache-2.0
-- Wireshark dissector of Tailrace's headers, generated from its Scapy layers by `tailrace dissector`.
local tailrace = Proto("tailrace", "Tailrace")
local ethertypes, ports = DissectorTable.get("ethertype"), DissectorTable.get("udp.port")
-- By layer: its bytes, and its fields: name, offset and length in bytes, mask, shift, ProtoField.
local sizes, layers, fields = {}, {}, {}
@HEADERS@
for _, rows in pairs(layers) do
  for _, row in ipairs(rows) do table.insert(fields, row[6]) end
end
tailrace.fields = fields

-- Adds a header at an offset; returns the values of its fields, and the next offset (nil: the frame is cut).
local function add(tree, tvb, at, layer)
  local values, after = {}, at + sizes[layer]
  if tvb:len() < after then return values, nil end
  local item = tree:add(tailrace, tvb(at, sizes[layer]), "Tailrace " .. layer)
  for _, row in ipairs(layers[layer]) do
    local range = tvb(at + row[2], row[3])
    item:add(row[6], range)
    values[row[1]] = bit.band(bit.rshift(range:uint(), row[5]), row[4])
  end
  for _ = 1, values.stamps or 0 do
    if after then _, after = add(item, tvb, after, "stamp") end
  end
  return values, after
end

function tailrace.dissector(tvb, pinfo, tree)
  local header, at = add(tree, tvb, 0, "local_header")
  local layer = @SUBTYPES@[header.subtype]
  if layer == nil then return end
  pinfo.cols.protocol, pinfo.cols.info = "Tailrace", layer
  local values, after = add(tree, tvb, at, layer)
  if values.next_type and after and after < tvb:len() then
    ethertypes:try(values.next_type, tvb(after):tvb(), pinfo, tree)
  end
end
ethertypes:add(@ETHER_TYPE@, tailrace)

-- A header after UDP, and RoCEv2 after it if `roce`.
local function over_udp(layer, port, roce)
  local proto = Proto("tailrace_" .. layer, "Tailrace " .. layer)
  function proto.dissector(tvb, pinfo, tree)
    local _, after = add(tree, tvb, 0, layer)
    pinfo.cols.protocol, pinfo.cols.info = "Tailrace", layer
    if roce and after and after < tvb:len() then ports:try(@ROCE_PORT@, tvb(after):tvb(), pinfo, tree) end
  end
  ports:add(port, proto)
end
@UDP@
"""


def lua() -> str:
    """The source text of the dissector."""
    load_folder(_LAYERS)
    subtypes = {condition["subtype"]: layer for condition, layer in LocalHeader.payload_guess}
    over_udp = {
        condition["dport"]: layer
        for condition, layer in UDP.payload_guess
        if layer.__module__.startswith(_LAYERS) and "dport" in condition
    }
    layers = [LocalHeader, *subtypes.values(), *over_udp.values()]
    lists = (field for layer in layers for field in layer.fields_desc if isinstance(field, PacketListField))
    names = ", ".join(f"[{number}] = '{_name(layer)}'" for number, layer in subtypes.items())
    udp = []
    for port, layer in over_udp.items():
        has_roce = any(issubclass(upper, BTH) for _, upper in layer.payload_guess)
        udp.append(f"over_udp('{_name(layer)}', {port}, {str(has_roce).lower()})")
    texts = {
        "HEADERS": "\n".join(map(_header, dict.fromkeys([*layers, *(field.cls for field in lists)]))),
        "SUBTYPES": f"({{{names}}})",
        "ETHER_TYPE": hex(local.ETHER_TYPE),
        "ROCE_PORT": str(ROCE_PORT),
        "UDP": "\n".join(udp),
    }
    return re.sub("@([A-Z_]+)@", lambda match: texts[match[1]], _CODE)


def _name(layer: type[Packet]) -> str:
    """The name of a layer in fields, such as flowcut_ack."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", layer.__name__).lower()


def _header(layer: type[Packet]) -> str:
    """The Lua statements that declare a layer."""
    rows, bit = [], 0
    for field in layer.fields_desc:
        if not isinstance(field, PacketListField):
            bits = round(field.sz * 8)
            rows.append(_row(_name(layer), field, bit, bits))
            bit += bits
    return f"sizes.{_name(layer)} = {bit // 8}\nlayers.{_name(layer)} = {{\n{''.join(rows)}}}"


def _row(layer: str, field: Any, start: int, bits: int) -> str:
    """A field of a layer, at its first bit."""
    first, end = start // 8, (start + bits + 7) // 8
    mask, shift = (1 << bits) - 1, end * 8 - start - bits
    texts = field.i2s.items() if isinstance(field, ByteEnumField) else ()
    names = "{" + ", ".join(f'[{number}] = "{text}"' for number, text in texts) + "}" if texts else "nil"
    base = "HEX" if isinstance(field, (XIntField, XShortEnumField)) else "DEC"
    kind, rest = f"uint{8 * (end - first)}", f", base.{base}, {names}, {mask << shift:#x}"
    kind, rest = ("ipv4", "") if isinstance(field, IPField) else (kind, rest)
    proto = f'ProtoField.{kind}("tailrace.{layer}.{field.name}", "{field.name}"{rest})'
    return f'  {{"{field.name}", {first}, {end - first}, {mask:#x}, {shift}, {proto}}},\n'
