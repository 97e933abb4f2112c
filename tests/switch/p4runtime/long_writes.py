# SPDX-License-Identifier: Apache-2.0
"""Writes that take a while, and what can be seen of them from outside."""

from __future__ import annotations

import json
import threading
import time

import grpc
from finsy.proto import p4r

from tailrace.p4rt.status import Code
from tests.switch.p4runtime.conftest import Rig, details_of

CELLS = 5000
"""Of an array that is written in 80 slices, and of which a Write of many lasts for seconds."""


def writing(
    rig: Rig, updates: list[p4r.Update], codes: list[Code], atomicity: int = 0, role: str = ""
) -> threading.Thread:
    """Starts a Write of new entries and returns when a part of it has been done."""
    request = rig.write_request(*updates, atomicity=atomicity, role=role)
    before = entries_now(rig)

    def write() -> None:
        try:
            rig.stub.Write(request, timeout=60)
            codes.extend([Code.OK] * len(updates))
        except grpc.RpcError as error:
            codes.extend(Code(detail.canonical_code) for detail in details_of(error))

    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive() and entries_now(rig) == before:
        time.sleep(0.001)
    return thread


def large_counter(rig: Rig) -> None:
    """Sets the pipeline with more cells of by_port."""
    request = rig.config_request("p4rt_all")
    program = json.loads(request.config.p4_device_config)
    (array,) = (
        candidate for candidate in program["counter_arrays"] if candidate["name"] == "AllIngress.by_port"
    )
    array["size"] = request.config.p4info.counters[0].size = CELLS
    request.config.p4_device_config = json.dumps(program).encode()
    rig.stub.SetForwardingPipelineConfig(request, timeout=60)


def entries_now(rig: Rig) -> int:
    """How many entries there are between two slices of a Write."""
    asked = p4r.Entity(table_entry=p4r.TableEntry(table_id=rig.names.id("tables", "mac")))

    def count() -> int:
        pipeline = rig.device._active
        assert pipeline is not None
        return sum(1 for _ in pipeline.state.entities(asked))

    return rig.in_server(count)
