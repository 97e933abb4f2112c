# SPDX-License-Identifier: Apache-2.0
"""P4Info with the annotations of real programs, as p4c writes them."""

from __future__ import annotations

import grpc
import pytest
from finsy.proto import p4i, p4r

from tests.switch.p4runtime.conftest import refusal

ENTRY, ACTION = "@entry_restriction", "@action_restriction"


def find(info: p4i.P4Info, path: str):
    """An object of P4Info: `tables/mac`, or `tables/mac/dst`, `actions/send/port`, one of its parts."""
    kind, alias, *part = path.split("/")
    entity = next(candidate for candidate in getattr(info, kind) if candidate.preamble.alias == alias)
    if not part:
        return entity.preamble
    inner = entity.match_fields if kind == "tables" else entity.params
    return next(candidate for candidate in inner if candidate.name == part[0])


def annotate(info: p4i.P4Info, annotations: dict[str, str | list[str]]) -> None:
    """Adds annotations, by what they are at."""
    for path, given in annotations.items():
        find(info, path).annotations.extend([given] if isinstance(given, str) else given)


def push(rig, annotations: dict[str, str | list[str]], action: int = 3, program: str = "p4rt_all") -> None:
    """Sets the pipeline with annotations."""
    request = rig.config_request(program, action)
    annotate(request.config.p4info, annotations)
    rig.set_pipeline(request)


def refused(rig, annotations: dict[str, str | list[str]], action: int = 3) -> str:
    """The same where it is refused: the message."""
    with pytest.raises(grpc.RpcError) as caught:
        push(rig, annotations, action)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT, caught.value
    message = caught.value.details() or ""
    assert "\n" not in message
    assert len(message) <= 300
    return message


def message_of(rig, *updates: p4r.Update, **more) -> str:
    """What is said of the first update of a Write that is refused."""
    return refusal(rig, *updates, **more)[1]
