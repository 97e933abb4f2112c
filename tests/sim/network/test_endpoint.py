# SPDX-License-Identifier: Apache-2.0
"""P4Runtime of the virtual network's switches, without a socket and with one."""

from __future__ import annotations

from ipaddress import IPv4Address
from typing import TypeAlias

import pytest
from finsy.proto import p4i, p4r
from google.protobuf import text_format

from tailrace.p4rt.status import Code, P4RtError
from tailrace.sim.network import BatchError, Network
from tailrace.sim.network.endpoint import ELECTION_ID, SwitchEndpoint
from tests.sim.network.l3 import BUILD, Frame, attach_all, packet, topology

SET = p4r.SetForwardingPipelineConfigRequest
Action: TypeAlias = p4r.SetForwardingPipelineConfigRequest.Action.ValueType


def pipeline(name: str, action: Action = SET.VERIFY_AND_COMMIT) -> p4r.SetForwardingPipelineConfigRequest:
    request = SET(action=action)
    text = (BUILD / f"{name}.p4info.txtpb").read_text()
    request.config.p4info.CopyFrom(text_format.Parse(text, p4i.P4Info()))
    request.config.p4_device_config = (BUILD / f"{name}.json").read_bytes()
    request.config.cookie.cookie = 7
    return request


def route(endpoint: SwitchEndpoint, ip: str, port: int, kind: int = p4r.Update.INSERT) -> p4r.WriteRequest:
    info = endpoint.pipeline().config.p4info
    table = next(t for t in info.tables if t.preamble.alias == "route")
    action = next(a for a in info.actions if a.preamble.alias == "forward")
    request = p4r.WriteRequest()
    entry = request.updates.add(type=kind).entity.table_entry
    entry.table_id = table.preamble.id
    match = entry.match.add(field_id=1).lpm
    match.value, match.prefix_len = IPv4Address(ip).packed, 32
    call = entry.action.action
    call.action_id = action.preamble.id
    call.params.add(param_id=1, value=b"\x02")
    call.params.add(param_id=2, value=port.to_bytes(2, "big").lstrip(b"\0"))
    return request


def test_tables_written_through_p4runtime_forward_packets() -> None:
    topo = topology("leaf-spine:leaves=1,spines=1,hosts=2,rate=8Gbps,delay=1us")
    with Network(topo) as net:
        endpoint = net.p4rt("leaf1")
        endpoint.set_pipeline(pipeline("basic_l3"))
        assert endpoint.pipeline().config.cookie.cookie == 7
        endpoint.write(route(endpoint, topo.host("h2").ip, topo.host("h2").port))
        nics = attach_all(net)
        nics["h1"].script = [(0, Frame(packet(topo, "h1", "h2", b"hello")))]
        net.run()
        assert nics["h2"].payloads() == [b"hello"]
        request = p4r.ReadRequest()
        request.entities.add().table_entry.SetInParent()
        entries = [e.table_entry for r in endpoint.read(request) for e in r.entities]
        assert [IPv4Address(e.match[0].lpm.value) for e in entries if e.match] == [
            IPv4Address(topo.host("h2").ip)
        ]


def test_switches_that_share_a_program_share_no_state() -> None:
    topo = topology()
    with Network(topo) as net:
        for name in ("leaf1", "leaf2"):
            net.p4rt(name).set_pipeline(pipeline("basic_l3"))
        first, second = net.p4rt("leaf1"), net.p4rt("leaf2")
        first.write(route(first, "10.0.0.9", 1))
        second.write(route(second, "10.0.0.9", 2))
        second.write(route(second, "10.0.0.9", 2, p4r.Update.DELETE))
        assert net.switch("leaf1").table_count(0) == 1
        assert net.switch("leaf2").table_count(0) == 0


def test_a_batch_that_fails_says_what_and_does_the_rest() -> None:
    topo = topology()
    with Network(topo) as net:
        endpoint = net.p4rt("leaf1")
        endpoint.set_pipeline(pipeline("basic_l3"))
        request = route(endpoint, "10.0.0.9", 1)
        request.updates.append(request.updates[0])
        request.updates.append(route(endpoint, "10.0.0.8", 1).updates[0])
        with pytest.raises(BatchError, match="write failed: number 2 of 3: ALREADY_EXISTS") as caught:
            endpoint.write(request)
        assert [r.code if r else None for r in caught.value.results] == [None, Code.ALREADY_EXISTS, None]
        assert net.switch("leaf1").table_count(0) == 2


def test_requests_without_a_pipeline_and_bad_pipelines_are_refused() -> None:
    with Network(topology()) as net:
        endpoint = net.p4rt("leaf1")
        with pytest.raises(P4RtError, match="no forwarding pipeline config is set"):
            endpoint.write(p4r.WriteRequest(updates=[p4r.Update()]))
        with pytest.raises(P4RtError, match="no forwarding pipeline config is set"):
            endpoint.packet_out(p4r.PacketOut(payload=b"x"))
        bad = pipeline("basic_l3")
        bad.config.p4_device_config = b"{"
        with pytest.raises(P4RtError, match="p4_device_config"):
            endpoint.set_pipeline(bad)
        with pytest.raises(P4RtError, match="action 77 is not known"):
            endpoint.set_pipeline(pipeline("basic_l3", Action(77)))


def test_a_saved_pipeline_runs_after_its_commit() -> None:
    with Network(topology()) as net:
        endpoint = net.p4rt("leaf1")
        endpoint.set_pipeline(pipeline("basic_l3", SET.VERIFY_AND_SAVE))
        assert net.switch("leaf1").program is None
        endpoint.set_pipeline(SET(action=SET.COMMIT))
        assert net.switch("leaf1").program is not None


def test_somebody_elses_election_id_may_not_write() -> None:
    with Network(topology()) as net:
        endpoint = net.p4rt("leaf1")
        request = pipeline("basic_l3")
        request.device_id = endpoint.device_id
        request.election_id.low = ELECTION_ID + 1
        with pytest.raises(P4RtError, match="not the primary"):
            endpoint.set_pipeline(request)


def packet_out(port: int, as_received: int, payload: bytes) -> p4r.PacketOut:
    message = p4r.PacketOut(payload=payload)
    for number, value in enumerate((port, as_received, 0), 1):
        message.metadata.add(metadata_id=number, value=bytes([value]))
    return message


def test_packet_outs_leave_at_their_port_and_packet_ins_come_back_at_once() -> None:
    topo = topology()
    frame = bytes(12) + b"\x88\xb5" + bytes(50)
    with Network(topo) as net:
        net.advance_to(1000)
        endpoint = net.p4rt("leaf1")
        endpoint.set_pipeline(pipeline("packet_io"))
        nics = attach_all(net)
        endpoint.packet_out(packet_out(1, 0, frame))
        net.run()
        assert [(time, data) for time, data, _ in nics["h1"].arrived] == [(1000 + 64 + 1000, frame)]
        nics["h1"].script = [(3000, Frame(frame))]
        net.run()
        received = endpoint.packet_ins()
        assert [m.payload for m in received] == [frame]
        assert endpoint.packet_ins() == []
