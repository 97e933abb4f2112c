# SPDX-License-Identifier: Apache-2.0
"""P4Runtime's messages: the modules that protoc generated, as finsy contains them.

p4i, p4t, p4d, p4r: of p4info.proto, p4types.proto, p4data.proto and p4runtime.proto; rpc_status: of
google.rpc.Status.

`from finsy.proto import p4r` gives the same modules, but it runs finsy's `__init__`, which imports gRPC and
asyncio: that takes as long as half of a small run.
"""

from __future__ import annotations

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

__all__ = ["p4d", "p4i", "p4r", "p4t", "rpc_status"]

_PACKAGES = ("finsy", "finsy.proto")


def _load(*names: str) -> list[ModuleType]:
    """Imports modules below finsy.proto; `finsy` and `finsy.proto` themselves stay unloaded."""
    if "finsy" not in sys.modules:
        spec = find_spec("finsy")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError("No module named 'finsy'", name="finsy")
        for package in _PACKAGES:
            stub = sys.modules[package] = ModuleType(package)
            stub.__path__ = [str(Path(spec.origin).parents[1].joinpath(*package.split(".")))]
        try:
            return [import_module(f"finsy.proto.{name}") for name in names]
        finally:
            for package in _PACKAGES:
                del sys.modules[package]
    return [import_module(f"finsy.proto.{name}") for name in names]


if TYPE_CHECKING:
    from finsy.proto import p4d, p4i, p4r, p4t, rpc_status
else:
    p4i, p4t, p4d, p4r, rpc_status = _load(
        *("p4.config.v1.p4info_pb2", "p4.config.v1.p4types_pb2", "p4.v1.p4data_pb2", "p4.v1.p4runtime_pb2"),
        "google.rpc.status_pb2",
    )
