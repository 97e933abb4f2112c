# SPDX-License-Identifier: Apache-2.0
"""Dry runs of packets on the switches of a network, or on copies of them in this process."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tailrace.cli.inspect.network import InspectedNetwork
    from tailrace.controller.inspect.node import InspectedSwitch
    from tailrace.p4rt.requests import TraceNeeds
    from tailrace.switch.replay.switch_copy import SwitchCopy
    from tailrace.switch.trace.events import Trace

_MOST_PRIORITIES = 8
_MOST_UNREAD = 4000
"""Limit, in characters, of the printed list of objects that could not be read."""

_T = TypeVar("_T")


class DryRuns(contextlib.ExitStack):
    """Asks switches for dry runs. If a switch does not offer them, a local copy of it makes them; the copy is
    created when first needed, with a note to the user.

    All methods raise SwitchError if a switch is gone or refuses, TraceError if it cannot be copied.
    """

    def __init__(self, network: InspectedNetwork) -> None:
        super().__init__()
        self._network = network
        self._copies: dict[str, SwitchCopy] = {}

    def traces(self, switch: str, port: int, frame: bytes, *, every: bool = False) -> list[Trace]:
        """What a switch would do with a frame received on a port.

        Outcomes differ in random numbers, meter colours and selected group members. `every`: traces of all
        outcomes, not only of the one that would happen now.
        """
        from tailrace.p4rt.requests import TraceRequest
        from tailrace.switch.trace.events import Trace

        if switch not in self._copies:
            connection = self._network.connection_to(switch)
            request = TraceRequest(connection.device_id, port, frame.hex(), every=every)
            responses = connection.traces(request)
            if responses is not None:
                return [decoded(response, Trace) for response in responses]
        return self._copy(switch).traces(port, frame, every=every)

    def needs(self, switch: str, port: int, frame: bytes) -> tuple[Trace, TraceNeeds]:
        """What the switch would do with a frame, and the state that another switch needs to do the same.

        Raises:
            SpecError: the trace exceeds the limits of a response.
        """
        from tailrace.p4rt.requests import TraceNeeds, TraceRequest
        from tailrace.spec import SpecError
        from tailrace.switch.trace.events import Trace

        connection = self._network.connection_to(switch)
        request = TraceRequest(connection.device_id, port, frame.hex(), needs=True)
        responses = connection.traces(request)
        if responses is None:
            return self._copy(switch).needs(port, frame)
        if len(responses) == 1:
            raise SpecError("the trace of the packet is too long for a response: it cannot be saved")
        return decoded(responses[0], Trace), decoded(responses[1], TraceNeeds)

    def _copy(self, switch: str) -> SwitchCopy:
        if switch not in self._copies:
            from tailrace.cli.inspect.replay import say
            from tailrace.spec.text import one_line
            from tailrace.switch.replay.switch_copy import SwitchCopy

            connection = self._network.connection_to(switch)
            node = self._network.nodes[connection.name]
            copy = SwitchCopy(
                connection,
                cpu_port=self._number(node, "cpu_port"),
                priority_queues=self._number(node, "priority_queues") or _MOST_PRIORITIES,
            )
            self._copies[switch] = self.enter_context(copy)
            say(
                f"{connection.name} makes no dry runs: its program and entries were read over P4Runtime, and"
                " a native switch in this process makes the dry runs, with empty queues and fresh meters"
            )
            if copy.unread:
                unread = one_line(", ".join(copy.unread), _MOST_UNREAD)
                say(f"{connection.name}: not read, and assumed to be as after a start: {unread}")
        return self._copies[switch]

    def _number(self, node: InspectedSwitch, key: str) -> int | None:
        """A number that P4Runtime does not offer: from the topology, else from the program's constants."""
        topology = self._network.topology
        known = {} if topology is None else {switch.name: switch for switch in topology.switches}
        value: int | None = getattr(known.get(node.name), key, None)
        return value or node.program.constants.get(key)


def decoded(response: bytes, kind: type[_T]) -> _T:
    """Decodes a response of a switch. Raises SpecError if it is invalid."""
    import msgspec

    from tailrace.spec import SpecError

    try:
        return msgspec.json.decode(response, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise SpecError(f"the response of the switch is no {kind.__name__}: {error}") from None
