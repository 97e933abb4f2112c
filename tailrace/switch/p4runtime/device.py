# SPDX-License-Identifier: Apache-2.0
"""One P4Runtime device: arbitration, pipelines and forwarding state, without gRPC.

A device has a live pipeline and perhaps a saved one (VERIFY_AND_SAVE). The saved pipeline runs on a scratch
switch, which gets no packets. While there is a saved pipeline, Write and Read apply to it; COMMIT makes it
live with the entities that were written.

`Work` (context.py) is a request in steps, between which other calls are served: a generator that yields the
units of work of each step. `in_quanta` joins short steps, `finish` runs all steps without pauses.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from tailrace.p4rt.messages import p4r
from tailrace.p4rt.requests import TraceNeeds, election_of
from tailrace.p4rt.status import Code, P4RtError, invalid, not_found
from tailrace.switch.compiler import CompilerError, SwitchProgram
from tailrace.switch.core import StateError, V1ModelSwitch
from tailrace.switch.p4runtime.arbitration import Arbiter
from tailrace.switch.p4runtime.context import (
    Context,
    DevicePorts,
    Work,
    as_p4rt_error,
    finish,
    in_quanta,
)
from tailrace.switch.p4runtime.entities.schema import build_schema
from tailrace.switch.p4runtime.memory import MemoryAccount, MemoryBudget, array_bytes
from tailrace.switch.p4runtime.packetio import PacketIo
from tailrace.switch.p4runtime.pipeline import ForwardingPipeline, Prepared, program_json, refusal
from tailrace.switch.p4runtime.reconcile import transfer
from tailrace.switch.p4runtime.state import AnyUpdate, ForwardingState, Result, UpdateResults
from tailrace.switch.p4runtime.statistics import statistics

if TYPE_CHECKING:
    from tailrace.switch.p4runtime.pins.roles import Roles
    from tailrace.switch.trace.coverage import EntryCoverage
    from tailrace.switch.trace.records import NumberedEvents

API_VERSION = "1.5.0"

_log = logging.getLogger("tailrace.switch")

_SetRequest = p4r.SetForwardingPipelineConfigRequest

_ARRAYS = "the program's counters, meters and registers"


def _no_pipeline() -> P4RtError:
    return P4RtError(Code.FAILED_PRECONDITION, "no forwarding pipeline config is set")


class DeviceSettings(msgspec.Struct, frozen=True):
    """How the device behaves.

    `bmv2_compat` follows simple_switch_grpc where it departs from the specification: while no stream is open,
    requests without an election id may write; metadata missing in a packet-out is zero; a group's max_size
    of 0 means P4Info's limit; P4Info's size of a selector is ignored; a table without a key may have one
    entry; role.config is ignored; the connected client with the highest election id is primary, and a missing
    election id is 0; GetForwardingPipelineConfig without a pipeline fails.
    `strict` follows the specification at the cost of other clients: packets wait while all cells of an array
    are written; all errors of a batch are reported; device id 0 is invalid.
    `memory_limit`: bytes for programs and entities; None: half of the machine's memory. `multicast_groups`:
    most multicast groups.
    """

    device_id: int = 0
    bmv2_compat: bool = False
    strict: bool = False
    memory_limit: int | None = None
    multicast_groups: int = 4096


class Device:
    """One device. Not thread-safe, except `prepare`, which changes nothing."""

    def __init__(
        self,
        switch: V1ModelSwitch,
        settings: DeviceSettings,
        now_ns: Callable[[], int],
        compile_program: Callable[[bytes], SwitchProgram],
        ports: DevicePorts | None = None,
    ) -> None:
        if settings.strict and not settings.device_id:
            raise ValueError("strict: device id 0 is not allowed (P4Runtime 5.1)")
        self.settings = settings
        self.arbiter = Arbiter(settings.device_id, lenient=settings.bmv2_compat)
        self.ports = ports or DevicePorts()
        self._switch = switch
        self._now_ns = now_ns
        self._compile = compile_program
        self._live: ForwardingPipeline | None = None
        self._saved: ForwardingPipeline | None = None
        self._dropped: list[ForwardingPipeline] = []
        self._building: ForwardingState | None = None  # the state of a pipeline that `_build` builds
        self.memory = MemoryBudget(settings.memory_limit)

    # ---- checks ----

    def check_device(self, device_id: int) -> None:
        """Rejects the id of another device, with NOT_FOUND."""
        if device_id != self.settings.device_id:
            raise not_found(f"device {device_id} is not known")

    def authorize(self, request: p4r.WriteRequest | _SetRequest) -> None:
        """Rejects a client that may not change the device (specification 12 and 14)."""
        self.check_device(request.device_id)
        election_id = election_of(request.election_id) if request.HasField("election_id") else None
        if self.settings.bmv2_compat and election_id is None:
            if self.arbiter.no_streams():
                return
            election_id = 0
        self.arbiter.authorize(request.role, election_id)

    @property
    def _active(self) -> ForwardingPipeline | None:
        """The pipeline to which Write and Read apply."""
        return self._saved or self._live

    def _state(self) -> ForwardingState:
        pipeline = self._active
        if pipeline is None:
            raise _no_pipeline()
        return pipeline.state

    # ---- pipeline configuration ----

    def prepare(self, request: _SetRequest) -> Prepared | None:
        """Verifies the configuration in a request and compiles its program; returns None for COMMIT.

        Raises:
            P4RtError: INVALID_ARGUMENT: the action is unknown, or the configuration cannot be realised.
        """
        actions = (
            _SetRequest.VERIFY,
            _SetRequest.VERIFY_AND_SAVE,
            _SetRequest.VERIFY_AND_COMMIT,
            _SetRequest.RECONCILE_AND_COMMIT,
        )
        if request.action == _SetRequest.COMMIT:
            if request.HasField("config"):
                raise invalid("COMMIT takes no config")
            return None
        if request.action not in actions:
            raise invalid(f"action {request.action} is not known")
        if not request.HasField("config"):
            raise invalid("config is missing")
        if not request.config.HasField("p4info"):
            raise invalid("config.p4info is missing")
        return self.prepare_config(request.config)

    def prepare_config(self, given: p4r.ForwardingPipelineConfig) -> Prepared:
        """Verifies a configuration.

        Raises:
            P4RtError: INVALID_ARGUMENT: it cannot be realised. INTERNAL: this machine cannot compile it.
        """
        try:
            program = self._compile(program_json(given.p4_device_config))
        except CompilerError as error:
            raise refusal(error) from error
        if program.model.unread:  # keys of the JSON that the compiler does not know
            _log.warning("p4_device_config: %s", program.model.unread)
        self.memory.check_fits(array_bytes(program.model), _ARRAYS)
        config = p4r.ForwardingPipelineConfig()
        config.CopyFrom(given)
        config.DiscardUnknownFields()
        schema = build_schema(config.p4info, program.model, lenient=self.settings.bmv2_compat)
        packet_io = PacketIo(schema, lenient=self.settings.bmv2_compat)
        return Prepared(config, program, schema, packet_io)

    def configure(self, action: int, prepared: Prepared | None) -> None:
        """Executes a prepared action of SetForwardingPipelineConfig; if it fails, nothing has changed.

        Raises:
            P4RtError: NOT_FOUND: no configuration is saved; INVALID_ARGUMENT: the forwarding state does not
                fit the new pipeline; RESOURCE_EXHAUSTED.
        """
        finish(self.configure_steps(action, prepared))
        for pipeline in self.dropped():
            pipeline.free()
            finish(pipeline.forget())  # `free` frees the packet-processing core only; this frees the entities

    def configure_steps(self, action: int, prepared: Prepared | None) -> Work:
        """`configure` in steps; no client may write meanwhile. `dropped` then returns the replaced pipelines.

        The new pipeline is built beside the live one, with all its state, and replaces it in one step that
        cannot fail. So the action either succeeds or changes nothing.
        """
        try:
            if prepared is None:
                if self._saved is None:
                    raise not_found("no config is saved")
                self._make_live((yield from self._build(self._saved.prepared, self._saved.state)))
            elif action == _SetRequest.VERIFY_AND_SAVE:
                saved = yield from self._build(prepared, None, beside_live=True)
                self._drop(self._saved)
                self._saved = saved
            elif action == _SetRequest.VERIFY_AND_COMMIT:
                self._make_live((yield from self._build(prepared, None)))
            elif action == _SetRequest.RECONCILE_AND_COMMIT:
                before = self._active
                self._make_live((yield from self._build(prepared, None if before is None else before.state)))
        except StateError as error:
            raise as_p4rt_error(error) from None
        except CompilerError as error:
            raise refusal(error) from error

    def config_response(self, response_type: int) -> bytes:
        """The serialized GetForwardingPipelineConfigResponse, which is cached with the pipeline; without a
        pipeline `config` is unset (specification 15).

        Raises:
            P4RtError: INVALID_ARGUMENT for an unknown response type.
                FAILED_PRECONDITION with `bmv2_compat`: there is no pipeline.
        """
        pipeline, request = self._active, p4r.GetForwardingPipelineConfigRequest
        if pipeline is None and self.settings.bmv2_compat:
            raise _no_pipeline()
        with_info = response_type in (request.ALL, request.P4INFO_AND_COOKIE)
        with_program = response_type in (request.ALL, request.DEVICE_CONFIG_AND_COOKIE)
        if not with_info and not with_program and response_type != request.COOKIE_ONLY:
            raise invalid(f"response type {response_type} is not known")
        if pipeline is None:
            return b""
        if response_type not in pipeline.responses:
            response, stored = p4r.GetForwardingPipelineConfigResponse(), pipeline.prepared.config
            response.config.SetInParent()
            if stored.HasField("cookie"):
                response.config.cookie.CopyFrom(stored.cookie)
            if with_info:
                response.config.p4info.CopyFrom(stored.p4info)
            if with_program:
                response.config.p4_device_config = stored.p4_device_config
            pipeline.responses[response_type] = response.SerializeToString()
        return pipeline.responses[response_type]

    def _build(
        self, prepared: Prepared, keep: ForwardingState | None, *, beside_live: bool = False
    ) -> Generator[int, None, ForwardingPipeline]:
        """Builds a pipeline on a scratch switch, in steps.

        Args:
            keep: the state to copy to the new pipeline; None: the pipeline begins with its initial state.
            beside_live: the live pipeline stays, so both together must fit into the memory limit.
        """
        account = MemoryAccount(self.memory)
        switch = V1ModelSwitch(None, self._switch.config)
        try:
            # if the pipeline soon replaces the live one, the sum of both may exceed the limit until then
            size = array_bytes(prepared.program.model)
            account.reserve(size, _ARRAYS) if beside_live else account.reserve_replacement(size, _ARRAYS)
            switch.clock(self._now_ns())
            switch.load(prepared.program)
            port_names = prepared.packet_io.port_names
            context = Context(switch, self._now_ns, self.ports, account, self.settings, port_names=port_names)
            self._building = ForwardingState(prepared.schema, context)
            pipeline = ForwardingPipeline(prepared, self._building)
            if keep is not None:
                try:
                    yield from transfer(keep, pipeline.state)
                except P4RtError as error:
                    if error.code == Code.RESOURCE_EXHAUSTED:
                        raise
                    raise invalid(f"the forwarding state cannot be kept: {error.message}") from None
        except BaseException:  # also GeneratorExit, if the steps are closed early
            if self._building is not None:
                # `states`: number of ForwardingStates that use the schema's strings, which are freed only if
                # there is one. The constructor has counted this one; `close`, which subtracts it, is not run
                prepared.schema.types.states -= 1
            switch.close()
            account.close()
            raise
        finally:
            self._building = None
        return pipeline

    def _make_live(self, pipeline: ForwardingPipeline) -> None:
        """Replaces the live pipeline; nothing here can fail."""
        scratch = pipeline.state.context.switch
        self._switch.exchange(scratch)
        pipeline.state.context.switch = self._switch
        # the scratch switch now has the program and state of the replaced pipeline
        before, self._live = self._live, pipeline
        saved, self._saved = self._saved, None
        if before is None:
            scratch.close()
        else:
            before.state.context.switch = scratch
        self._drop(before)
        self._drop(saved)

    def _drop(self, pipeline: ForwardingPipeline | None) -> None:
        if pipeline is not None:
            self._dropped.append(pipeline)

    def dropped(self) -> list[ForwardingPipeline]:
        """Returns the replaced pipelines, once; the caller must free them."""
        replaced, self._dropped = self._dropped, []
        return replaced

    def close(self) -> None:
        """Frees the saved and replaced pipelines; the live switch stays open.

        As the device ends, entities are left to the garbage collector (no `forget`).
        """
        self._drop(self._saved)
        self._saved = None
        for pipeline in self.dropped():
            pipeline.free()

    # ---- entities ----

    def write(self, request: p4r.WriteRequest, updates: Sequence[AnyUpdate] | None = None) -> list[Result]:
        """Executes a Write; returns the result of each update.

        Args:
            updates: used instead of the request's updates.

        Raises:
            P4RtError: the whole request is rejected.
        """
        results: list[Result] = []  # None: the update succeeded
        finish(self.write_steps(request, results, self.write_term(request), updates))
        count = len(request.updates if updates is None else updates)
        return results + [None] * (count - len(results))

    def write_term(self, request: p4r.WriteRequest) -> int:
        """Authorizes a Write; returns its term, the number of the role's last change of primary.

        Raises:
            P4RtError: as `authorize`.
        """
        self.authorize(request)
        return self.arbiter.term(request.role)

    def write_steps(
        self,
        request: p4r.WriteRequest,
        results: UpdateResults,
        term: int,
        updates: Sequence[AnyUpdate] | None = None,
    ) -> Work:
        """`write` in steps.

        Args:
            results: receives the results in order, but may end with the last update that fails: updates for
                which it has no result have succeeded.
            term: the result of `write_term`. If another client has become primary since, the rest of the
                Write is rejected; if its client has only disconnected, the Write continues.
            updates: used instead of the request's updates.
        """
        role, atomicity = request.role, request.atomicity

        def takeover_error() -> Result:
            if self.arbiter.term(role) > term:
                return P4RtError(Code.PERMISSION_DENIED, "another client has become the primary of this role")
            return None

        error = takeover_error()
        if error is not None:
            raise error
        state, updates = self._state(), request.updates if updates is None else updates
        if atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
            yield from state.write(updates, results, role, takeover_error)
            return
        if atomicity not in (p4r.WriteRequest.ROLLBACK_ON_ERROR, p4r.WriteRequest.DATAPLANE_ATOMIC):
            raise invalid(f"atomicity {atomicity} is not known")
        # Frees the numbers of unused strings (sdn_string) first, if few numbers are free. During the batch
        # this is not possible: a rollback needs the numbers of the strings in the entities that it restores.
        yield from in_quanta(state.sweep_if_nearly_full())
        steps = state.write_all_or_none(updates, results, role, takeover_error)
        if atomicity == p4r.WriteRequest.ROLLBACK_ON_ERROR:
            yield from steps
            return
        with state.context.switch.between_packets():
            work = sum(steps)  # runs all steps
        yield work

    def read(self, request: p4r.ReadRequest) -> tuple[list[p4r.ReadResponse], list[Result]]:
        """Executes a Read; returns the responses, and the result of each entity that is requested.

        Raises:
            P4RtError: the whole request is rejected.
        """
        results: list[Result] = []
        responses = [response for response in self.read_steps(request, results) if response is not None]
        return responses, results

    def read_steps(
        self, request: p4r.ReadRequest, results: UpdateResults
    ) -> Iterator[p4r.ReadResponse | None]:
        """`read` in quanta of work (context.QUANTUM); yields None for a quantum without entities.

        Args:
            results: receives the result of each entity that is requested.
        """
        self.check_device(request.device_id)
        yield from self._state().read(request.entities, results, request.role)

    # ---- events of the data plane; all belong to the live pipeline ----

    @property
    def roles(self) -> Roles | None:
        """The roles of the live pipeline; None: every role has access to everything."""
        return None if self._live is None else self._live.prepared.schema.roles

    def port_changed(self, port: int, *, up: bool) -> None:
        """Handles a port that has gone up or down."""
        if self.ports.is_up(port) == up:
            return
        if up:
            self.ports.down.discard(port)
        else:
            self.ports.down.add(port)
        for state in self._states():
            state.port_changed(port)

    def _states(self) -> list[ForwardingState]:
        """The states of all pipelines, including one that is being built."""
        built = [pipeline.state for pipeline in (self._live, self._saved) if pipeline is not None]
        return built if self._building is None else [*built, self._building]

    def packet_in(self, frame: bytes) -> p4r.PacketIn | None:
        """The message for a frame on the CPU port; None: there is no pipeline, or the frame is too short."""
        return None if self._live is None else self._live.prepared.packet_io.packet_in(frame)

    def packet_out(self, message: p4r.PacketOut) -> bytes:
        """The frame to inject on the CPU port for a packet-out.

        Raises:
            P4RtError: the message does not match P4Info, or there is no CPU port or no pipeline.
        """
        if self._switch.config.cpu_port is None:
            raise P4RtError(Code.FAILED_PRECONDITION, "the switch has no CPU port")
        if self._live is None:
            raise _no_pipeline()
        return self._live.prepared.packet_io.packet_out(message)

    def has_port(self, port: int) -> bool:
        """Whether the switch receives packets on a port, the CPU port included."""
        return port == self._switch.config.cpu_port or self.ports.exists(port)

    def set_rate(self, port: int, rate_bps: int) -> None:
        """Sets the rate of a port; 0: no limit. Raises P4RtError if there is no such port."""
        if not self.has_port(port):
            raise invalid(f"the switch has no port {port}")
        self._switch.port_config(port, rate_bps=rate_bps)

    def running(self) -> tuple[V1ModelSwitch, int]:
        """The live switch, and the time on its clock in ns; thread-safe."""
        return self._switch, self._now_ns()

    def entity_text(self, kind: Literal["entry", "member", "group"], name: str, handle: int) -> str:
        """An entity of the live pipeline as text (see entity_text.py); "": it does not exist."""
        # here and below: only traces need what is imported late
        from tailrace.switch.p4runtime.entity_text import entity_text

        if self._live is None:
            return ""
        return entity_text(self._live.state, self._live.prepared.config.p4info, kind, name, handle)

    def needs(self, trace_steps: NumberedEvents, now_ns: int) -> TraceNeeds:
        """Program and state with which another switch repeats a trace; `now_ns`: the time of the trace.

        Raises:
            TraceError: the state has changed since the trace, or cannot be saved.
        """
        from tailrace.switch.p4runtime.read_set import needs
        from tailrace.switch.trace import TraceError

        if self._live is None:
            raise TraceError("the switch has no program")
        config = self._live.prepared.config
        return needs(self._live.state, trace_steps, config.p4_device_config, self._switch.config, now_ns)

    def entries_hit(self, was_hit: Callable[[int, int], bool]) -> Iterator[EntryCoverage]:
        """The entries of the live pipeline, and whether each was hit (switch.trace.coverage)."""
        from tailrace.switch.p4runtime.entity_text import all_entries

        if self._live is not None:
            yield from all_entries(self._live.state, self._live.prepared.config.p4info, was_hit)

    def statistics(self) -> dict[str, object]:
        """The counts of the switch's ports and buffer up to now."""
        return statistics(self._switch, self.ports.known, self._now_ns())

    def digest_lists(self, now_ns: int) -> list[p4r.DigestList]:
        """Takes the switch's digest messages; returns the lists to send now.

        A list's timestamp is that of its first message, on the switch's clock.
        """
        records = self._switch.digests()
        if self._live is None:
            return []
        digests = self._live.state.digests
        full = [digests.record(record, now_ns) for record in records]
        return [message for message in full if message is not None] + digests.due(now_ns)

    def digests_forgotten(self) -> int:
        """How many unacknowledged digest messages were evicted from the cache."""
        return 0 if self._live is None else self._live.state.digests.forgotten()

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Handles a digest acknowledgement; INVALID_ARGUMENT for an unknown digest."""
        if self._live is None:
            raise _no_pipeline()
        self._live.state.digests.acknowledge(message)

    def idle_entries(self, now_ns: int) -> list[p4r.TableEntry]:
        """The entries whose idle timeout has expired."""
        return [] if self._live is None else self._live.state.idle(now_ns)
