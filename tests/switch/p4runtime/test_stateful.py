# SPDX-License-Identifier: Apache-2.0
"""The server's state against a model: random writes, every one answered and read back as the model says."""

from __future__ import annotations

from finsy.proto import p4r
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tailrace.p4rt.status import Code
from tailrace.switch.compiler import load_program
from tailrace.switch.p4runtime.context import DevicePorts
from tailrace.switch.p4runtime.device import DeviceSettings
from tests.switch.p4runtime.conftest import BUILD, Rig, wildcard
from tests.switch.p4runtime.test_externs import group, modify, register, session
from tests.switch.p4runtime.test_profiles import member
from tests.switch.p4runtime.test_tables import mac, read, route

INSERT, MODIFY, DELETE = 1, 2, 3
kinds = st.sampled_from([INSERT, INSERT, MODIFY, DELETE])
addresses = st.integers(0, 5)
ports = st.integers(0, 511)


def short(value: int) -> bytes:
    """The canonical bytestring of a number (P4Runtime §8.3)."""
    return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")


class ServerStateMachine(RuleBasedStateMachine):
    """Tables of two match kinds, members, multicast groups, clone sessions and registers."""

    @initialize()
    def start(self) -> None:
        program = load_program((BUILD / "p4rt_all.json").read_bytes())
        self.rig = Rig(program, DeviceSettings(device_id=1), DevicePorts())
        self.rig.primary()
        self.rig.push("p4rt_all")
        self.mac: dict[int, int] = {}
        self.routes: dict[tuple[int, int], int] = {}
        self.members: dict[int, int] = {}
        self.groups: dict[int, set[tuple[int, int]]] = {}
        self.sessions: dict[int, int] = {}
        self.words = dict.fromkeys(range(16), 0)

    def teardown(self) -> None:
        if hasattr(self, "rig"):
            self.rig.close()

    def expect(self, kind: int, there: bool) -> Code:
        if kind == INSERT:
            return Code.ALREADY_EXISTS if there else Code.OK
        return Code.OK if there else Code.NOT_FOUND

    def keep(self, state: dict, key: object, value: object, kind: int, update: p4r.Update) -> None:
        """Writes, checks the answer, and does to the model what was done to the server."""
        code = self.expect(kind, key in state)
        assert [code] == self.rig.write(update)
        if code == Code.OK:
            if kind == DELETE:
                del state[key]
            else:
                state[key] = value

    @rule(kind=kinds, address=addresses, port=ports)
    def write_mac(self, kind: int, address: int, port: int) -> None:
        self.keep(self.mac, address, port, kind, mac(self.rig, address, ("forward", port), kind))

    @rule(kind=kinds, network=st.integers(0, 3), prefix=st.integers(8, 12), port=ports)
    def write_route(self, kind: int, network: int, prefix: int, port: int) -> None:
        value = network << 30 >> (32 - prefix) << (32 - prefix)
        update = route(self.rig, short(value), prefix, ("send", port), kind)
        self.keep(self.routes, (value, prefix), port, kind, update)

    @rule(kind=kinds, number=st.integers(1, 4), port=ports)
    def write_member(self, kind: int, number: int, port: int) -> None:
        self.keep(self.members, number, port, kind, member(self.rig, number, port, kind))

    @rule(
        kind=kinds,
        number=st.integers(1, 3),
        replicas=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 2)), max_size=4),
    )
    def write_group(self, kind: int, number: int, replicas: set[tuple[int, int]]) -> None:
        self.keep(self.groups, number, replicas, kind, modify(group(number, *sorted(replicas)), kind))

    @rule(kind=kinds, number=st.integers(1, 3), port=st.integers(1, 9))
    def write_session(self, kind: int, number: int, port: int) -> None:
        self.keep(self.sessions, number, port, kind, modify(session(number, port), kind))

    @rule(index=st.integers(0, 15), value=st.integers(0, 2**32 - 1))
    def write_register(self, index: int, value: int) -> None:
        assert [Code.OK] == self.rig.write(modify(register(self.rig, "words", index, short(value))))
        self.words[index] = value

    @rule(batch=st.lists(st.tuples(kinds, addresses, ports), min_size=2, max_size=6))
    def write_a_batch_that_rolls_back(self, batch: list[tuple[int, int, int]]) -> None:
        """ROLLBACK_ON_ERROR: all or nothing."""
        updates, model, failed = [], dict(self.mac), False
        for kind, address, port in batch:
            updates.append(mac(self.rig, address, ("forward", port), kind))
            if not failed:
                failed = self.expect(kind, address in model) != Code.OK
                if kind == DELETE:
                    model.pop(address, None)
                else:
                    model[address] = port
        codes = self.rig.write(*updates, atomicity=1)
        assert failed == any(code != Code.OK for code in codes)
        if not failed:
            self.mac = model

    @rule()
    def push_the_pipeline_again(self) -> None:
        """Row 10: everything is fresh after a commit, replication state too."""
        self.rig.push("p4rt_all")
        for state in (self.mac, self.routes, self.members, self.groups, self.sessions):
            state.clear()
        self.words = dict.fromkeys(range(16), 0)

    def table(self, name: str) -> list[p4r.TableEntry]:
        return read(self.rig, name)

    @invariant()
    def tables_read_as_written(self) -> None:
        if not hasattr(self, "mac"):
            return
        got = {
            int.from_bytes(e.match[0].exact.value, "big"): int.from_bytes(
                e.action.action.params[0].value, "big"
            )
            for e in self.table("mac")
        }
        assert self.mac == got
        got_routes = {
            (int.from_bytes(e.match[0].lpm.value, "big"), e.match[0].lpm.prefix_len): int.from_bytes(
                e.action.action.params[0].value, "big"
            )
            for e in self.table("route")
        }
        assert self.routes == got_routes

    @invariant()
    def the_rest_reads_as_written(self) -> None:
        if not hasattr(self, "mac"):
            return
        groups = wildcard("packet_replication_engine_entry.multicast_group_entry")
        sessions = wildcard("packet_replication_engine_entry.clone_session_entry")
        got = [e.register_entry for e in self.rig.read(register(self.rig, "words", None))]
        assert self.words == {e.index.index: int.from_bytes(e.data.bitstring, "big") for e in got}
        assert self.members == {
            e.action_profile_member.member_id: int.from_bytes(
                e.action_profile_member.action.params[0].value, "big"
            )
            for e in self.rig.read(wildcard("action_profile_member"))
        }
        entries = [e.packet_replication_engine_entry.multicast_group_entry for e in self.rig.read(groups)]
        assert self.groups == {
            e.multicast_group_id: {(int.from_bytes(r.port, "big"), r.instance) for r in e.replicas}
            for e in entries
        }
        clones = [e.packet_replication_engine_entry.clone_session_entry for e in self.rig.read(sessions)]
        assert self.sessions == {e.session_id: int.from_bytes(e.replicas[0].port, "big") for e in clones}


TestServerState = ServerStateMachine.TestCase
TestServerState.settings = settings(max_examples=25, stateful_step_count=25)
