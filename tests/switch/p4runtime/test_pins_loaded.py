# SPDX-License-Identifier: Apache-2.0
"""What PINS asks for beyond the specification is loaded for the programs that have it, and for no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.switch.p4runtime.conftest import BUILD

ROOT = Path(__file__).parents[3]

SCRIPT = """
import sys
from finsy.proto import p4i, p4r
from google.protobuf import text_format
from tailrace.switch.compiler import load_program
from tailrace.switch.core import V1ModelSwitch
from tailrace.switch.p4runtime import server
from tailrace.switch.p4runtime.device import Device, DeviceSettings

program, annotation = sys.argv[1:]
switch = V1ModelSwitch(None)
device = Device(switch, DeviceSettings(bmv2_compat=True), lambda: 0, load_program)
config = p4r.ForwardingPipelineConfig(p4_device_config=open(program + ".json", "rb").read())
text_format.Parse(open(program + ".p4info.txtpb").read(), config.p4info)
if annotation:
    config.p4info.tables[0].preamble.annotations.append(annotation)
device.configure(p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT, device.prepare_config(config))
wildcard = p4r.Entity(table_entry=p4r.TableEntry())
assert device.write(p4r.WriteRequest(updates=[p4r.Update(type=1, entity=wildcard)]))[0] is not None
assert device.read(p4r.ReadRequest(entities=[wildcard]))[1] == [None]
switch.close()
print(*(name for name in sys.modules if name.startswith("tailrace.switch.p4runtime.pins")))
"""


@pytest.mark.parametrize("annotation", ["", '@entry_restriction("true")'])
def test_a_program_without_annotations_loads_no_pins(annotation: str) -> None:
    command = [sys.executable, "-c", SCRIPT, str(BUILD / "p4rt_all"), annotation]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert bool(done.stdout.split()) == bool(annotation)
