# SPDX-License-Identifier: Apache-2.0
"""One P4Runtime device: arbitration, pipelines and forwarding state, without gRPC.

A device has a live pipeline and perhaps a saved one (VERIFY_AND_SAVE). The saved pipeline runs on a scratch
switch that no packet reaches; Write and Read refer to it until COMMIT moves what was written to the live
switch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from finsy.proto import p4i, p4r

from native.compiler import Program, ProgramError
from native.runtime import Switch
from native.switchd.p4rt.arbitration import Arbiter, election_of
from native.switchd.p4rt.context import Context, Limits, Ports
from native.switchd.p4rt.device_config import program_json
from native.switchd.p4rt.errors import Code, P4RtError, invalid, not_found
from native.switchd.p4rt.not_compiled import refusal
from native.switchd.p4rt.packetio import PacketIo
from native.switchd.p4rt.reconcile import snapshot, transfer
from native.switchd.p4rt.schema import Schema, build_schema
from native.switchd.p4rt.state import Result, State
from native.switchd.statistics import statistics

API_VERSION = "1.5.0"

_SetRequest = p4r.SetForwardingPipelineConfigRequest


@dataclass(frozen=True, slots=True)
class Settings:
    """How the device behaves.

    `bmv2_compat` does what simple_switch_grpc does where it departs from the specification: with no stream
    open, requests without an election id may write; metadata missing in a packet-out is zero; a group's
    max_size of 0 is P4Info's limit; a table without a key takes one entry; role.config is ignored.
    """

    device_id: int = 0
    bmv2_compat: bool = False
    max_streams: int = 64
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A configuration that was found to be possible."""

    config: p4r.ForwardingPipelineConfig
    program: Program
    schema: Schema


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline with its state; `scratch` is the switch of a pipeline that is not live."""

    prepared: Prepared
    state: State
    packet_io: PacketIo
    scratch: Switch | None


class Device:
    """One device. Not safe for threads, but for `prepare`, which touches nothing."""

    def __init__(
        self,
        switch: Switch,
        settings: Settings,
        now_ns: Callable[[], int],
        compile_program: Callable[[bytes], Program],
        ports: Ports | None = None,
    ) -> None:
        self.settings = settings
        self.arbiter = Arbiter(settings.device_id, settings.max_streams, lenient=settings.bmv2_compat)
        self.ports = ports or Ports()
        self._switch = switch
        self._now_ns = now_ns
        self._compile = compile_program
        self._live: Pipeline | None = None
        self._saved: Pipeline | None = None

    # ---- checks ----

    def check_device(self, device_id: int) -> None:
        """Refuses a device id that is not this device's, with NOT_FOUND."""
        if device_id != self.settings.device_id:
            raise not_found(f"device {device_id} is not known")

    def authorize(self, request: p4r.WriteRequest | _SetRequest) -> None:
        """Refuses a client that may not change the device (specification 12 and 14, in this order)."""
        self.check_device(request.device_id)
        election_id = election_of(request.election_id) if request.HasField("election_id") else None
        if self.settings.bmv2_compat and election_id is None and self.arbiter.no_streams():
            return
        self.arbiter.authorize(request.role, election_id)

    @property
    def _active(self) -> Pipeline | None:
        return self._saved or self._live

    def _state(self) -> State:
        pipeline = self._active
        if pipeline is None:
            raise P4RtError(Code.FAILED_PRECONDITION, "no forwarding pipeline config is set")
        return pipeline.state

    # ---- pipeline configuration ----

    def prepare(self, request: _SetRequest) -> Prepared | None:
        """Verifies the configuration in a request, compiling its program; None where the action needs none.

        Raises:
            P4RtError: INVALID_ARGUMENT: the action, or the configuration, which cannot be realised.
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
        except ProgramError as error:
            raise refusal(error) from error
        config = p4r.ForwardingPipelineConfig()
        config.CopyFrom(given)
        schema = build_schema(config.p4info, program.model, lenient=self.settings.bmv2_compat)
        self._packet_io(config.p4info)
        return Prepared(config, program, schema)

    def configure(self, action: int, prepared: Prepared | None) -> None:
        """Carries out an action of SetForwardingPipelineConfig that was prepared.

        Raises:
            P4RtError: NOT_FOUND when nothing is saved; INVALID_ARGUMENT when state cannot be kept.
        """
        try:
            self._configure(action, prepared)
        except ProgramError as error:
            raise refusal(error) from error

    def _configure(self, action: int, prepared: Prepared | None) -> None:
        if prepared is None:
            self._commit_saved()
        elif action == _SetRequest.VERIFY_AND_SAVE:
            saved = self._scratch(prepared)
            self._drop_saved()
            self._saved = saved
        elif action == _SetRequest.VERIFY_AND_COMMIT:
            self._drop_saved()
            self.install(prepared)
        elif action == _SetRequest.RECONCILE_AND_COMMIT:
            self._reconcile(prepared)

    def install(self, prepared: Prepared) -> State:
        """Makes a pipeline the live one, with nothing but the entries of its program."""
        self._live = None
        self._switch.load(prepared.program)
        state = State(prepared.schema, self._context(self._switch))
        self._live = Pipeline(prepared, state, self._packet_io(prepared.config.p4info), None)
        return state

    def _commit_saved(self) -> None:
        saved = self._saved
        if saved is None:
            raise not_found("no config is saved")
        updates = snapshot(saved.state)
        self._drop_saved()
        error = transfer(updates, self.install(saved.prepared))
        if error is not None:
            raise P4RtError(Code.INTERNAL, f"the saved state could not be written again: {error.message}")

    def _reconcile(self, prepared: Prepared) -> None:
        before = self._active
        if before is None:
            self.install(prepared)
            return
        updates = snapshot(before.state)
        trial = self._scratch(prepared)
        error = transfer(updates, trial.state)
        _close(trial)
        if error is not None:
            raise invalid(f"the forwarding state cannot be kept: {error.message}")
        self._drop_saved()
        transfer(updates, self.install(prepared))

    def _scratch(self, prepared: Prepared) -> Pipeline:
        switch = Switch(prepared.program, self._switch.config)
        state = State(prepared.schema, self._context(switch))
        return Pipeline(prepared, state, self._packet_io(prepared.config.p4info), switch)

    def _drop_saved(self) -> None:
        saved, self._saved = self._saved, None
        if saved is not None:
            _close(saved)

    def close(self) -> None:
        """Frees what the device made itself; the switch that it was given stays open."""
        self._drop_saved()

    def _context(self, switch: Switch) -> Context:
        return Context(switch, self._now_ns, self.ports, self.settings.limits, self.settings.bmv2_compat)

    def _packet_io(self, info: p4i.P4Info) -> PacketIo:
        return PacketIo(info, lenient=self.settings.bmv2_compat)

    def pipeline_config(self, response_type: int) -> p4r.GetForwardingPipelineConfigResponse:
        """Answers GetForwardingPipelineConfig; `config` is unset while there is none (specification 15).

        Raises:
            P4RtError: INVALID_ARGUMENT for an unknown response type.
        """
        request = p4r.GetForwardingPipelineConfigRequest
        response = p4r.GetForwardingPipelineConfigResponse()
        with_info = response_type in (request.ALL, request.P4INFO_AND_COOKIE)
        with_program = response_type in (request.ALL, request.DEVICE_CONFIG_AND_COOKIE)
        if not with_info and not with_program and response_type != request.COOKIE_ONLY:
            raise invalid(f"response type {response_type} is not known")
        pipeline = self._active
        if pipeline is None:
            return response
        stored = pipeline.prepared.config
        response.config.SetInParent()
        if stored.HasField("cookie"):
            response.config.cookie.CopyFrom(stored.cookie)
        if with_info:
            response.config.p4info.CopyFrom(stored.p4info)
        if with_program:
            response.config.p4_device_config = stored.p4_device_config
        return response

    # ---- entities ----

    def write(self, request: p4r.WriteRequest) -> list[Result]:
        """Carries out a Write; what became of each update.

        Raises:
            P4RtError: the whole request is refused.
        """
        self.authorize(request)
        state = self._state()
        if request.atomicity == p4r.WriteRequest.CONTINUE_ON_ERROR:
            return state.write(request.updates)
        if request.atomicity == p4r.WriteRequest.ROLLBACK_ON_ERROR:
            return state.write_all_or_none(request.updates)
        if request.atomicity == p4r.WriteRequest.DATAPLANE_ATOMIC:
            raise P4RtError(Code.UNIMPLEMENTED, "DATAPLANE_ATOMIC batches are not supported")
        raise invalid(f"atomicity {request.atomicity} is not known")

    def read(self, request: p4r.ReadRequest) -> tuple[list[p4r.ReadResponse], list[Result]]:
        """Carries out a Read: the responses, and what became of each request in it.

        Every role has the full pipeline, so the role filters nothing.

        Raises:
            P4RtError: the whole request is refused.
        """
        self.check_device(request.device_id)
        return self._state().read(request.entities)

    # ---- events of the data plane, which concern the live pipeline ----

    def port_changed(self, port: int, *, up: bool) -> None:
        """Notes that a port went up or down."""
        if self.ports.is_up(port) == up:
            return
        if up:
            self.ports.down.discard(port)
        else:
            self.ports.down.add(port)
        for pipeline in (self._live, self._saved):
            if pipeline is not None:
                pipeline.state.port_changed(port)

    def packet_in(self, frame: bytes) -> p4r.PacketIn | None:
        """The message for a frame on the CPU port; None without a pipeline or when it is too short."""
        return None if self._live is None else self._live.packet_io.packet_in(frame)

    def packet_out(self, message: p4r.PacketOut) -> bytes:
        """The frame to inject on the CPU port for a packet-out.

        Raises:
            P4RtError: the message is not what P4Info asks for, or there is no CPU port or no pipeline.
        """
        if self._switch.config.cpu_port is None:
            raise P4RtError(Code.FAILED_PRECONDITION, "the switch has no CPU port")
        if self._live is None:
            raise P4RtError(Code.FAILED_PRECONDITION, "no forwarding pipeline config is set")
        return self._live.packet_io.packet_out(message)

    def statistics(self) -> dict[str, object]:
        """What the switch's ports and memory have counted up to now."""
        return statistics(self._switch, self.ports.known, self._now_ns())

    def digest_lists(self, now_ns: int) -> list[p4r.DigestList]:
        """Takes the digest messages that wait in the switch; the lists that are to be sent now.

        Their time is when the switch made their first message, by its own clock.
        """
        records = self._switch.digests()
        if self._live is None:
            return []
        digests = self._live.state.digests
        full = [digests.record(record, now_ns) for record in records]
        return [message for message in full if message is not None] + digests.due(now_ns)

    def acknowledge(self, message: p4r.DigestListAck) -> None:
        """Handles a digest acknowledgement; INVALID_ARGUMENT for an unknown digest."""
        if self._live is None:
            raise P4RtError(Code.FAILED_PRECONDITION, "no forwarding pipeline config is set")
        self._live.state.digests.acknowledge(message)

    def idle_entries(self, now_ns: int) -> list[p4r.TableEntry]:
        """The entries whose idle timeout has run out."""
        return [] if self._live is None else self._live.state.idle(now_ns)


def capabilities() -> p4r.CapabilitiesResponse:
    """What the server can do."""
    return p4r.CapabilitiesResponse(p4runtime_api_version=API_VERSION)


def failed(results: Iterable[Result]) -> bool:
    """Whether something in a batch failed."""
    return any(result is not None for result in results)


def _close(pipeline: Pipeline) -> None:
    if pipeline.scratch is not None:
        pipeline.scratch.close()
