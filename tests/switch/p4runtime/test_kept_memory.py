# SPDX-License-Identifier: Apache-2.0
"""Nothing is kept of a call that has ended, whatever became of it: no search for cycles is needed."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from types import FrameType

import pytest
from finsy.proto import p4r

from tailrace.cbuild.artifacts import ROOT
from tailrace.p4rt.requests import STATISTICS, TRACE
from tests.eventually import eventually
from tests.switch.p4runtime.conftest import TIMEOUT_S, Rig, RigMaker, code_of

LARGE = bytes(300_000)
OURS = f"{ROOT / 'tailrace'}{os.sep}"
"""Not the packages of an environment in a clone called tailrace."""


def refused_push(rig: Rig) -> None:
    request = p4r.SetForwardingPipelineConfigRequest(device_id=1, action=3)
    request.config.p4_device_config = LARGE
    code_of(rig.stub.SetForwardingPipelineConfig, request)


def bad_push(rig: Rig) -> None:
    rig.election_id = 1
    request = rig.config_request("p4rt_all")
    request.config.p4_device_config = LARGE
    code_of(rig.stub.SetForwardingPipelineConfig, request)


def refused_write(rig: Rig) -> None:
    code_of(rig.stub.Write, p4r.WriteRequest(device_id=1, updates=[p4r.Update()] * 1000))


def failed_updates(rig: Rig) -> None:
    rig.election_id = 1
    rig.write(*[p4r.Update(type=p4r.Update.INSERT)] * 200)
    rig.write(*[p4r.Update(type=p4r.Update.INSERT)] * 200, atomicity=1)


def failed_reads(rig: Rig) -> None:
    request = p4r.ReadRequest(device_id=1, entities=[p4r.Entity()] * 200)
    code_of(lambda timeout: list(rig.stub.Read(request, timeout=timeout)))


def another_device(rig: Rig) -> None:
    code_of(rig.stub.GetForwardingPipelineConfig, p4r.GetForwardingPipelineConfigRequest(device_id=9))
    rig.stub.GetForwardingPipelineConfig(p4r.GetForwardingPipelineConfigRequest(device_id=1))


def no_message(rig: Rig) -> None:
    for method in ("Write", "SetForwardingPipelineConfig", "Capabilities", "GetForwardingPipelineConfig"):
        call = rig.channel.unary_unary(f"/p4.v1.P4Runtime/{method}", bytes, bytes)
        code_of(call, LARGE)


def beside_p4runtime(rig: Rig) -> None:
    code_of(lambda timeout: list(rig.channel.unary_stream(f"/{'/'.join(TRACE)}", bytes, bytes)(LARGE)))
    code_of(lambda timeout: rig.channel.unary_unary(f"/{'/'.join(STATISTICS)}", bytes, bytes)(LARGE))


def long_first_message(rig: Rig) -> None:
    session = rig.session()
    session.arbitrate(3, role="x" * 300_000)
    session.ended()


def stream_that_is_refused(rig: Rig) -> None:
    session = rig.session()
    session.arbitrate(3, device_id=9)
    session.ended()


def cancelled(rig: Rig) -> None:
    session = rig.session()
    session.arbitrate(4)
    session.next()
    session.close()
    call = rig.stub.Write.future(rig.write_request(*[p4r.Update()] * 5000))
    call.cancel()


CALLS = (
    *(refused_push, bad_push, refused_write, failed_updates, failed_reads, another_device, no_message),
    *(beside_p4runtime, long_first_message, stream_that_is_refused, cancelled),
)


@pytest.mark.parametrize("call", CALLS)
def test_no_frame_of_a_call_is_left_in_a_cycle(make_rig: RigMaker, call: Callable[[Rig], None]) -> None:
    """Where it would keep the request: of 30 MB, for as long as nobody searches (daemon/cli.py seldom does)."""
    rig = make_rig("p4rt_all", pushed="p4rt_all")
    call(rig)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(3):
            call(rig)
        assert eventually(lambda: rig.in_server(lambda: len(rig.server.service.streams)) == 1)
        rig.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=TIMEOUT_S)
        gc.collect()
        frames = [item for item in gc.garbage if isinstance(item, FrameType)]
        assert not [frame for frame in frames if frame.f_code.co_filename.startswith(OURS)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
