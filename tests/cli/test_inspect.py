# SPDX-License-Identifier: Apache-2.0
"""Inspection commands against real native switches over gRPC on loopback."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from finsy.proto import p4r

from tailrace.controller.inband import query
from tailrace.p4rt.encoding import encode
from tailrace.p4rt.endpoint import run_at_once
from tailrace.p4rt.entities import P4TableAction, P4TableEntry, P4TableMatch
from tailrace.p4rt.programs import P4Program
from tests.cli.conftest import Command, Fabric, Outcome
from tests.cli.frames import data_frame
from tests.controller.inspect.served import Primary, read_program, served

BUILD = Path(__file__).parents[1] / "programs" / "build"


def by(rows: list[dict], **wanted: object) -> list[dict]:
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def test_tables_have_names_and_typed_values(tailrace: Command) -> None:
    rows = tailrace("tables", "leaf1", "-o", "json").rows
    routes = by(rows, table="ipv4_routes", entry="entry")
    assert [(row["match"], row["action"], row["params"]) for row in routes] == [
        (
            {"dst": "10.0.1.2/32"},
            "to_host",
            {"port": {"port": 1, "peer": "h1"}, "dst_mac": "02:00:0a:00:01:02"},
        ),
        (
            {"dst": "10.0.1.3/32"},
            "to_host",
            {"port": {"port": 2, "peer": "h2"}, "dst_mac": "02:00:0a:00:01:03"},
        ),
        ({"dst": "10.0.2.0/24"}, "to_group", {"group": 1, "size": 2}),
    ]
    (default,) = by(rows, table="ipv4_routes", entry="default")
    assert (default["match"], default["action"], default["params"]) == (
        None,
        "discard",
        {"reason": "NO_ROUTE"},
    )
    (config,) = by(rows, table="flowcut_config")
    assert config["params"]["mode"] == "FULL"
    assert config["params"]["first_path"] == "LEAST_LOADED"


def test_tables_of_all_switches_come_in_a_fixed_order(tailrace: Command) -> None:
    first, second = tailrace("tables", "-o", "jsonl").out, tailrace("tables", "-o", "jsonl").out
    assert first == second
    names = [json.loads(line)["switch"] for line in first.splitlines()]
    assert list(dict.fromkeys(names)) == ["leaf1", "leaf2", "spine1", "spine2"]


def test_where_filters_by_typed_values(tailrace: Command) -> None:
    result = tailrace("tables", "leaf*", "-o", "json", "--where", "dst has 10.0.2.9 and port != h1")
    assert result.rows == []
    result = tailrace("tables", "leaf1", "-o", "json", "--where", "dst has 10.0.2.9")
    assert [row["match"] for row in result.rows] == [{"dst": "10.0.2.0/24"}]
    result = tailrace("tables", "-o", "json", "--where", "port == spine2 and table == group_members")
    assert {row["switch"] for row in result.rows} == {"leaf1", "leaf2"}


def test_csv_has_a_header_and_every_column(tailrace: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(tailrace("tables", "spine1", "-o", "csv").out)))
    assert list(rows[0]) == [
        *("switch", "table", "entry", "priority", "match", "action", "params", "packets", "bytes")
    ]
    assert by(rows, action="to_group")[0]["match"] == "dst=10.0.1.0/24"


def test_table_output_is_aligned_and_not_cut_in_a_pipe(tailrace: Command) -> None:
    lines = tailrace("tables", "leaf1", "--where", "table == ipv4_routes").out.splitlines()
    at = lines[0].index("action")
    assert all(line[at - 1] == " " and line[at] != " " for line in lines)
    assert any("port=1:h1 dst_mac=02:00:0a:00:01:02" in line for line in lines)


def test_groups_say_ports_neighbours_and_users(tailrace: Command) -> None:
    rows = tailrace("groups", "-o", "json", "--where", "name == group_members").rows
    (leaf,) = by(rows, switch="leaf1")
    assert leaf["ports"] == [{"port": 3, "peer": "spine1"}, {"port": 4, "peer": "spine2"}]
    assert leaf["used_by"] == ["10.0.2.0/24"]
    assert len(by(rows, switch="spine2")) == 2


def test_clone_sessions_name_special_ports(tailrace: Command) -> None:
    rows = tailrace("groups", "leaf1", "-o", "json", "--where", "kind == clone").rows
    assert [(row["group"], row["ports"]) for row in rows] == [(1, [{"port": 509, "peer": "mirror"}])]


def test_counters_leave_out_what_never_counted(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    fabric.switches["leaf1"].receive(1, data_frame("10.0.1.2", "10.0.2.2"))
    rows = tailrace("counters", "leaf1", "-o", "json").rows
    (received,) = by(rows, counter="port_rx")
    assert (received["index"], received["packets"]) == ({"port": 1, "peer": "h1"}, 1)
    assert len(tailrace("counters", "leaf1", "--all", "-o", "json").rows) > 1000


def test_drops_are_counted_by_reason(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    fabric.switches["leaf1"].receive(1, data_frame("10.0.1.2", "10.9.9.9"))
    rows = tailrace("counters", "leaf1", "-o", "json", "--where", "counter == drops").rows
    assert [(row["index"], row["packets"]) for row in rows] == [("NO_ROUTE", 1)]


def test_rates_are_growth_a_second(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    fabric.switches["leaf1"].receive(1, data_frame("10.0.1.2", "10.0.2.2"))
    result = tailrace("counters", "leaf1", "--watch", "0.01", "--rounds", "2", "-o", "jsonl")
    first, second = [row for row in map(json.loads, result.out.splitlines()) if row["counter"] == "port_rx"]
    assert first["packets_per_s"] is None
    assert second["packets_per_s"] == 0
    assert first["at"] < second["at"]


def test_watch_writes_blocks_where_there_is_no_terminal(tailrace: Command) -> None:
    result = tailrace("groups", "leaf1", "--watch", "0.01", "--rounds", "3")
    assert result.status == 0
    blocks = result.out.strip().split("\n\n")
    assert len(blocks) == 3
    assert all(block.splitlines()[1].startswith("switch") for block in blocks)


def test_watch_in_csv_has_one_header(tailrace: Command) -> None:
    lines = tailrace("groups", "leaf1", "--watch", "0.01", "--rounds", "3", "-o", "csv").out.splitlines()
    assert [line.split(",")[0] for line in lines].count("at") == 1


def test_registers_of_the_native_switch(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    fabric.switches["leaf1"].receive(1, data_frame("10.0.1.2", "10.0.2.2", dport=4791))
    words = ("-o", "json", "--where", "register in (flow_key, flow_out_port)")
    key, out_port = tailrace("registers", "leaf1", *words).rows
    assert (key["register"], out_port["register"]) == ("flow_key", "flow_out_port")
    assert "a0001020a000202" in key["value"]
    assert out_port["value"]["peer"] in {"spine1", "spine2"}


def flow_row(result: Outcome) -> dict:
    (row,) = result.rows
    return row


def test_flows_are_decoded(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    leaf, frame = fabric.switches["leaf1"], data_frame("10.0.1.2", "10.0.2.3", sport=700, dport=4791)
    ((out_port, _),) = leaf.receive(1, frame)
    leaf.advance(5_000_000)
    row = flow_row(tailrace("flows", "-o", "json"))
    assert {
        key: row[key] for key in ("switch", "src", "dst", "sport", "dport", "protocol", "from", "to")
    } == {
        "switch": "leaf1",
        "src": "10.0.1.2",
        "dst": "10.0.2.3",
        "sport": 700,
        "dport": 4791,
        "protocol": "udp",
        "from": "h1",
        "to": "h4",
    }
    assert row["state"] == "TRACKED"
    assert row["in_port"] == {"port": 1, "peer": "h1"}
    assert row["out_port"] == {"port": out_port, "peer": f"spine{out_port - 2}"}
    assert row["in_flight_bytes"] == len(frame)
    assert (row["rtt_avg"], row["samples"]) == (None, 0)
    assert row["idle_ns"] == 5_000_000


def test_only_buckets_that_hold_something_are_asked_for(
    fabric: Fabric, tailrace: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Registers tell which those are."""
    fabric.install()
    asked: list[int] = []
    ask = query.PrimaryQueryClient.ask

    def count(
        self: query.PrimaryQueryClient, switch: str, op: str, indices: Sequence[int]
    ) -> Iterator[tuple[int, bytes]]:
        asked.extend(indices)
        return ask(self, switch, op, indices)

    monkeypatch.setattr(query.PrimaryQueryClient, "ask", count)
    assert tailrace("flows").err == "4 switches track no flow now\n"
    assert asked == []
    fabric.switches["leaf1"].receive(1, data_frame("10.0.1.2", "10.0.2.3", sport=700, dport=4791))
    (row,) = tailrace("flows", "-o", "json").rows
    assert asked == [row["bucket"]]


def test_flows_can_be_filtered_by_size_with_a_unit(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    fabric.switches["leaf1"].receive(1, data_frame("10.0.1.2", "10.0.2.3", payload=2000))
    assert len(tailrace("flows", "-o", "json", "--where", "in_flight_bytes > 1KiB").rows) == 1
    assert tailrace("flows", "-o", "json", "--where", "in_flight_bytes > 1MiB").rows == []


def test_queues_of_every_port(tailrace: Command) -> None:
    rows = tailrace("queues", "leaf1", "-o", "json").rows
    assert [row["port"]["peer"] for row in rows] == ["h1", "h2", "spine1", "spine2"]
    assert all(row["egress_queue_bytes"] == 0 for row in rows)


def test_paths_show_every_member_at_every_hop(tailrace: Command) -> None:
    rows = tailrace("paths", "h1", "10.0.2.3", "-o", "json").rows
    assert [(row["hop"], row["switch"], [port["peer"] for port in row["ports"]]) for row in rows] == [
        (1, "leaf1", ["spine1", "spine2"]),
        (2, "spine1", ["leaf2"]),
        (2, "spine2", ["leaf2"]),
        (3, "leaf2", ["h4"]),
    ]
    assert rows[-1]["note"] == "delivered"


def test_paths_of_all_pairs(tailrace: Command) -> None:
    result = tailrace("paths", "-o", "json")
    assert result.status == 0
    assert len({(row["src"], row["dst"]) for row in result.rows}) == 4 * 3


@pytest.mark.parametrize("name", ["flows", "queues", "tables", "groups", "counters", "registers", "diff"])
def test_an_unknown_switch_is_bad_input(tailrace: Command, name: str) -> None:
    result = tailrace(name, "leaf7")
    assert (result.status, result.out) == (2, "")
    assert result.err == "tailrace: no switch 'leaf7'; did you mean leaf2?\n"


@pytest.mark.parametrize(
    ("words", "tables"),
    [
        (("ipv4_routes",), {"ipv4_routes"}),
        (("leaf1", "ipv4_routes", "FlowcutIngress.route.routes.ipv4_routes"), {"ipv4_routes"}),
        (("flowcut_config", "routes.ipv4_routes", "leaf*"), {"flowcut_config", "ipv4_routes"}),
    ],
)
def test_tables_by_name(tailrace: Command, words: tuple[str, ...], tables: set[str]) -> None:
    """A word that is no switch's is a table's: its alias, its full name or the end of that."""
    result = tailrace("tables", *words, "-o", "json")
    assert {row["table"] for row in result.rows} == tables
    leaves = {"leaf1"} if "leaf1" in words else {"leaf1", "leaf2"}
    assert {row["switch"] for row in result.rows} - leaves == (
        set() if len(words) > 1 else {"spine1", "spine2"}
    )


def test_counters_and_registers_by_name(fabric: Fabric, tailrace: Command) -> None:
    fabric.install("leaf1")
    result = tailrace("counters", "leaf1", "port_tx", "--all", "-o", "json")
    assert {row["counter"] for row in result.rows} == {"port_tx"}
    result = tailrace("registers", "leaf1", "rtt_min_ticks", "--all", "-o", "json")
    assert {row["register"] for row in result.rows} == {"rtt_min_ticks"}


@pytest.mark.parametrize(
    ("shown", "kind", "name", "meant"),
    [
        ("tables", "table", "ipv4_rutes", "did you mean ipv4_routes?"),
        ("counters", "counter", "prt_tx", "did you mean port_tx?"),
        ("registers", "register", "", "expected "),
        ("tables", "table", "routes.", "did you mean"),
        ("tables", "table", "*routes", "did you mean"),
    ],
)
def test_a_name_of_nothing(tailrace: Command, shown: str, kind: str, name: str, meant: str) -> None:
    result = tailrace(shown, "leaf1", name)
    assert (result.status, result.out, result.err.count("\n")) == (2, "", 1)
    assert result.err.startswith(f"tailrace: no switch and no {kind} {name!r}; {meant}")


# ---- a program of somebody else's ----


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Two switches with tests/programs/basic_l3.p4, and a tutorials' topology.json; words that lead to them."""
    program = read_program(BUILD, "basic_l3")
    drawing = {
        "hosts": {
            "h1": {"ip": "10.0.1.1/24", "mac": "08:00:00:00:01:11"},
            "h2": {"ip": "10.0.2.2/24", "mac": "08:00:00:00:02:22"},
        },
        "switches": {"s1": {}, "s2": {}},
        "links": [["h1", "s1-p1"], ["h2", "s2-p1"], ["s1-p2", "s2-p2"]],
    }
    path = tmp_path_factory.mktemp("foreign") / "topology.json"
    path.write_text(json.dumps(drawing))
    with served(2) as switches:
        for switch, routes in zip(switches, ({1: 1, 2: 2}, {1: 2, 2: 1}), strict=True):
            with Primary(switch) as primary:
                run_at_once(primary.push(program))
                run_at_once(primary.write([route_update(program, net, port) for net, port in routes.items()]))
        yield [
            *("--address", f"s1={switches[0].address}@1"),
            *("--address", f"s2={switches[1].address}@2"),
            *("--topology", str(path)),
        ]


def route_update(program: P4Program, net: int, port: int) -> p4r.Update:
    action = P4TableAction("forward", next_hop=0x080000000100 + net, port=port)
    entry = P4TableEntry("route", match=P4TableMatch(dst=f"10.0.{net}.0/24"), action=action)
    return p4r.Update(type=p4r.Update.INSERT, entity=encode(program, [entry])[0])


def test_tables_of_a_foreign_program(command: Command, foreign: list[str]) -> None:
    rows = command(
        "tables", "s1", *foreign, "-o", "json", "--where", "table == route and entry == entry"
    ).rows
    assert [(row["match"], row["params"]) for row in rows] == [
        ({"dst": "10.0.1.0/24"}, {"next_hop": "08:00:00:00:01:01", "port": {"port": 1, "peer": "h1"}}),
        ({"dst": "10.0.2.0/24"}, {"next_hop": "08:00:00:00:01:02", "port": {"port": 2, "peer": "s2"}}),
    ]


def test_paths_of_a_foreign_program(command: Command, foreign: list[str]) -> None:
    rows = command("paths", "h1", "h2", *foreign, "-o", "json").rows
    assert [(row["switch"], row["ports"][0]["peer"]) for row in rows] == [("s1", "s2"), ("s2", "h2")]


def test_queues_of_a_foreign_program(command: Command, foreign: list[str]) -> None:
    """Those of the native switch's traffic manager; only ports that have carried something are known."""
    assert command("queues", *foreign, "-o", "json").status == 0


@pytest.mark.parametrize("name", ["flows", "registers"])
def test_what_a_foreign_program_does_not_have(command: Command, foreign: list[str], name: str) -> None:
    result = command(name, *foreign)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("tailrace: s1: its program ")
    assert result.err.count("\n") == 1


def test_a_switch_that_is_called_like_a_table(command: Command, foreign: list[str]) -> None:
    """The switch is meant, and how the table is shown is said."""
    words = [word.replace("s1=", "route=") for word in foreign if not word.endswith(".json")]
    words.remove("--topology")
    result = command("tables", "route", *words, "-o", "json")
    assert {row["switch"] for row in result.rows} == {"route"}
    assert len({row["table"] for row in result.rows}) > 1
    assert result.err == "tailrace: route is a switch; for the table: --where 'table == route'\n"
