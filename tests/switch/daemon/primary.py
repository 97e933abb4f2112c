# SPDX-License-Identifier: Apache-2.0
"""The primary client of a switch, with a program whose register may be of any size."""

from __future__ import annotations

import json
import queue
from pathlib import Path

import grpc
from finsy.proto import p4r, p4r_grpc
from google.protobuf import text_format

DEVICE_ID = 1
ELECTION_ID = 1
_BUILD = Path(__file__).parents[2] / "programs" / "build"
_PROGRAM = "p4rt_all"


def config(sizes: dict[str, int]) -> p4r.ForwardingPipelineConfig:
    """The test program with registers of other sizes, by name."""
    program = json.loads((_BUILD / f"{_PROGRAM}.json").read_bytes())
    for array in program["register_arrays"]:
        array["size"] = sizes.get(array["name"], array["size"])
    made = p4r.ForwardingPipelineConfig()
    text_format.Parse((_BUILD / f"{_PROGRAM}.p4info.txtpb").read_text("utf-8"), made.p4info)
    for register in made.p4info.registers:
        register.size = sizes.get(register.preamble.name, register.size)
    made.p4_device_config = json.dumps(program).encode()
    return made


class Primary:
    """It is primary until it is closed."""

    def __init__(self, address: str, sizes: dict[str, int]) -> None:
        self.config = config(sizes)
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options=options)
        self.stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._sent: queue.Queue[p4r.StreamMessageRequest | None] = queue.Queue()
        self._stream = self.stub.StreamChannel(iter(self._sent.get, None))
        arbitration = p4r.StreamMessageRequest()
        arbitration.arbitration.device_id = DEVICE_ID
        arbitration.arbitration.election_id.low = ELECTION_ID
        self._sent.put(arbitration)
        next(iter(self._stream))

    def close(self) -> None:
        self._sent.put(None)
        self._channel.close()

    def push(self) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(device_id=DEVICE_ID, config=self.config)
        request.election_id.low = ELECTION_ID
        request.action = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT
        self.stub.SetForwardingPipelineConfig(request)

    def fill(self, register: str) -> None:
        """Writes all cells of a register."""
        request = p4r.WriteRequest(device_id=DEVICE_ID)
        request.election_id.low = ELECTION_ID
        entry = request.updates.add(type=p4r.Update.MODIFY).entity.register_entry
        ids = {each.preamble.name: each.preamble.id for each in self.config.p4info.registers}
        entry.register_id = ids[register]
        entry.data.bitstring = b"\7"
        self.stub.Write(request)
