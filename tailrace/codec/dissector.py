# SPDX-License-Identifier: Apache-2.0
"""A Wireshark dissector in Lua, generated from the Scapy layers: EtherType 0x88B5 and Flowcut's UDP headers.

Fields are called tailrace.LAYER.FIELD, such as tailrace.cnm.valid_ticks. What follows a header is dissected
by its `next_type`, or as RoCEv2 after a NIC shim. Wireshark itself dissects RoCEv2 (the fields `left` and
`path_tag` of the BTH are infiniband.bth.reserved7 and the low six bits of infiniband.bth.reserved8) and PFC
(macc).
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
local fields, headers = {}, {}

-- A field: name, offset and length in bytes, mask, shift, and the ProtoField.
local function header(layer, size, rows)
  headers[layer] = {size = size, fields = {}}
  for _, row in ipairs(rows) do
    headers[layer].fields[row[1]] = row
    table.insert(headers[layer].fields, row)
    table.insert(fields, row[6])
  end
end

@HEADERS@
tailrace.fields = fields

local function value(tvb, at, row)
  return bit.band(bit.rshift(tvb(at + row[2], row[3]):uint(), row[5]), row[4])
end

-- Adds a header at an offset; returns a field's value (nil: none) and the next offset (nil: frame is cut).
local function add(tree, tvb, at, layer, field)
  local spec = headers[layer]
  if tvb:len() < at + spec.size then return nil, nil end
  local item = tree:add(tailrace, tvb(at, spec.size), "Tailrace " .. layer)
  for _, row in ipairs(spec.fields) do item:add(row[6], tvb(at + row[2], row[3])) end
  local after = at + spec.size
  if spec.fields.stamps then
    for _ = 1, value(tvb, at, spec.fields.stamps) do
      if after == nil then return nil, nil end
      _, after = add(item, tvb, after, "stamp")
    end
  end
  local row = field and spec.fields[field]
  return row and value(tvb, at, row), after
end

function tailrace.dissector(tvb, pinfo, tree)
  local subtype, at = add(tree, tvb, 0, "local_header", "subtype")
  local layer = @SUBTYPES@[subtype]
  if layer == nil then return end
  pinfo.cols.protocol = "Tailrace"
  pinfo.cols.info = layer
  local kind, after = add(tree, tvb, at, layer, "next_type")
  if kind and after and after < tvb:len() then
    DissectorTable.get("ethertype"):try(kind, tvb(after):tvb(), pinfo, tree)
  end
end
DissectorTable.get("ethertype"):add(@ETHER_TYPE@, tailrace)

-- A header after UDP, and RoCEv2 after it if `roce`.
local function over_udp(layer, port, roce)
  local proto = Proto("tailrace_" .. layer, "Tailrace " .. layer)
  function proto.dissector(tvb, pinfo, tree)
    local _, after = add(tree, tvb, 0, layer)
    pinfo.cols.protocol = "Tailrace"
    pinfo.cols.info = layer
    if roce and after and after < tvb:len() then
      DissectorTable.get("udp.port"):try(@ROCE_PORT@, tvb(after):tvb(), pinfo, tree)
    end
  end
  DissectorTable.get("udp.port"):add(port, proto)
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
    texts = {
        "HEADERS": "\n".join(map(_header, dict.fromkeys([*layers, *(field.cls for field in lists)]))),
        "SUBTYPES": f"({{{names}}})",
        "ETHER_TYPE": hex(local.ETHER_TYPE),
        "ROCE_PORT": str(ROCE_PORT),
        "UDP": "\n".join(
            f"over_udp('{_name(layer)}', {port}, {_has_roce(layer)})" for port, layer in over_udp.items()
        ),
    }
    return re.sub("@([A-Z_]+)@", lambda match: texts[match[1]], _CODE)


def _name(layer: type[Packet]) -> str:
    """The name of a layer in fields, such as flowcut_ack."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", layer.__name__).lower()


def _has_roce(layer: type[Packet]) -> str:
    return str(any(issubclass(upper, BTH) for _, upper in layer.payload_guess)).lower()


def _header(layer: type[Packet]) -> str:
    """The Lua statement that declares a layer."""
    rows, bit = [], 0
    for field in layer.fields_desc:
        if not isinstance(field, PacketListField):
            bits = round(field.sz * 8)
            rows.append(_row(_name(layer), field, bit, bits))
            bit += bits
    return f'header("{_name(layer)}", {bit // 8}, {{\n{"".join(rows)}}})'


def _row(layer: str, field: Any, start: int, bits: int) -> str:
    first, end = start // 8, (start + bits + 7) // 8
    length = end - first
    shift = end * 8 - start - bits
    mask = (1 << bits) - 1
    name = f'"tailrace.{layer}.{field.name}", "{field.name}"'
    if isinstance(field, IPField):
        kind = f"ipv4({name})"
    else:
        base = "HEX" if isinstance(field, (XIntField, XShortEnumField)) else "DEC"
        values = "nil"
        if isinstance(field, ByteEnumField):
            values = "{" + ", ".join(f'[{number}] = "{text}"' for number, text in field.i2s.items()) + "}"
        shown = "" if bits == length * 8 else f", {mask << shift:#x}"
        kind = f"uint{length * 8}({name}, base.{base}, {values}{shown})"
    return f'  {{"{field.name}", {first}, {length}, {mask:#x}, {shift}, ProtoField.{kind}}},\n'
