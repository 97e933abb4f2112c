# SPDX-License-Identifier: Apache-2.0
"""Files of simple_switch_CLI's commands, as P4Runtime updates."""

from __future__ import annotations

from pathlib import Path

import pytest
from finsy.proto import p4r
from google.protobuf import text_format

from tailrace.p4rt import programs
from tailrace.p4rt.entry_files import Updates, read_updates
from tailrace.p4rt.switch_cli import replication
from tailrace.spec.errors import FileError

BUILD = Path(__file__).parents[1] / "programs" / "build"
FIRST = (1 << 31) - 1
"""Priority in P4Runtime of the smallest one of Thrift, which wins."""


def carried_out(tmp_path: Path, program: str, *lines: str) -> Updates:
    path = tmp_path / "commands.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return read_updates(path, programs.read(BUILD / f"{program}.json"))


def entries(updates: Updates) -> list[str]:
    """Key, priority and arguments of table entries, short."""
    lines = []
    for update in updates:
        entry = update.entity.table_entry
        parts = [text_format.MessageToString(match, as_one_line=True) for match in entry.match]
        values = ",".join(param.value.hex() for param in entry.action.action.params)
        lines.append(f"{' '.join(parts)} | {entry.priority} | {values}".removeprefix(" "))
    return lines


def test_every_kind_of_key(tmp_path: Path) -> None:
    updates = carried_out(
        tmp_path,
        "match_kinds",
        "table_add exact_match set_exact 0x05 2 1 => 3",
        "table_add MatchIngress.lpm_match MatchIngress.set_lpm 10.1.0.0/16 => 0x04",
        "table_add lpm_with_exact set_lpm_mix 2 2001:db8::/32 1 => 5",
        "table_add ternary_match set_ternary 0x10&&&0x1f 0&&&0 => 6 10",
        "table_add range_match set_range 80->443 0->127 => 7 0",
        "table_add optional_match set_optional 5&&&0xffffff 0&&&0 => 8 2147483646",
        "table_set_default keyless set_keyless 9",
        "table_set_default keyless set_keyless 10",
    )
    assert entries(updates) == [
        'field_id: 1 exact { value: "\\005" } field_id: 2 exact { value: "\\002" } field_id: 3 exact { value: "\\001" } | 0 | 03',
        'field_id: 1 lpm { value: "\\n\\001\\000\\000" prefix_len: 16 } | 0 | 04',
        'field_id: 1 exact { value: "\\002" } field_id: 2 lpm { value: " \\001\\r\\270'
        + "\\000" * 12
        + '" prefix_len: 32 } field_id: 3 exact { value: "\\001" } | 0 | 05',
        f'field_id: 1 ternary {{ value: "\\020" mask: "\\037" }} | {FIRST - 10} | 06',
        f'field_id: 1 range {{ low: "P" high: "\\001\\273" }} | {FIRST} | 07',
        'field_id: 1 optional { value: "\\005" } | 1 | 08',
        "| 0 | 0a",
    ]
    assert updates.places == [f"line {number}" for number in (1, 2, 3, 4, 5, 6, 8)]
    assert updates[-1].type == p4r.Update.MODIFY and updates[-1].entity.table_entry.is_default_action


def test_handles(tmp_path: Path) -> None:
    """They count from 0; one that was given back is given anew, with another version."""
    updates = carried_out(
        tmp_path,
        "match_kinds",
        "table_add lpm_match set_lpm 10.0.0.0/8 => 1",
        "table_add lpm_match set_lpm 11.0.0.0/8 => 2",
        "table_delete lpm_match 0",
        "table_add lpm_match set_lpm 12.0.0.0/8 => 3",
        f"table_modify lpm_match set_lpm {1 << 24} => 4",
        "table_modify lpm_match set_lpm 1 5",
    )
    assert sorted(entry.split("|")[-1] for entry in entries(updates)) == [" 04", " 05"]
    cleared = carried_out(
        tmp_path, "match_kinds", "table_add lpm_match set_lpm 10.0.0.0/8 => 1", "table_clear lpm_match"
    )
    assert cleared == []


def test_action_profiles(tmp_path: Path) -> None:
    updates = carried_out(
        tmp_path,
        "action_profiles",
        "act_prof_create_member next_hops set_port 1",
        "act_prof_create_member ProfileIngress.next_hops set_port_and_mac 2 00:00:00:00:00:02",
        "act_prof_create_group next_hops",
        "act_prof_add_member_to_group next_hops 0 0",
        "act_prof_add_member_to_group next_hops 1 0",
        "act_prof_remove_member_from_group next_hops 0 0",
        "table_indirect_create_member rewrite set_tos 7",
        "table_indirect_add rewrite 6 => 0",
        "table_indirect_add_with_group route 10.0.0.0/8 => 0",
    )
    kinds = [str(update.entity.WhichOneof("entity")) for update in updates]
    assert kinds == ["action_profile_member"] * 3 + ["action_profile_group"] + ["table_entry"] * 2
    members = [u.entity.action_profile_member.member_id for u in updates[:3]]
    assert members == [1, 2, 1]
    assert [m.member_id for m in updates[3].entity.action_profile_group.members] == [2]
    targets = [update.entity.table_entry.action for update in updates[4:]]
    assert (targets[0].action_profile_member_id, targets[1].action_profile_group_id) == (1, 1)


def test_copies(tmp_path: Path) -> None:
    updates = carried_out(
        tmp_path,
        "basic_l3",
        "mirroring_add_mc 7 1",
        "mc_mgrp_create 1",
        "mc_mgrp_create 1",
        "mc_mgrp_destroy 9",
        "mc_node_create 0 3 1",
        "mc_node_create 9 2 |",
        "mc_node_associate 1 0",
        "mc_node_associate 1 1",
        "mc_node_update 0 3",
        "mirroring_add 5 4",
        "mirroring_add 6 4",
        "mirroring_delete 6",
        "mc_mgrp_create 2",
        "mc_mgrp_destroy 2",
        "mc_node_create 1 8",
        "mc_node_destroy 2",
    )
    group, many, single = (update.entity.packet_replication_engine_entry for update in updates)
    replicas = [(3, 0), (2, 9)]
    assert [(r.egress_port, r.instance) for r in group.multicast_group_entry.replicas] == replicas
    assert [(r.egress_port, r.instance) for r in many.clone_session_entry.replicas] == replicas
    assert single.clone_session_entry.session_id == 5
    assert [(r.egress_port, r.instance) for r in single.clone_session_entry.replicas] == [(4, 0)]
    assert updates.places == ["line 8", "line 1", "line 10"]


def test_copies_of_clone_sessions_are_bounded(tmp_path: Path) -> None:
    """Each session of a group has all its copies: a short file would be gigabytes of updates."""
    nodes = 1 + replication.MOST_COPIES // 512
    ports = " ".join(map(str, range(512)))
    lines = ["mc_mgrp_create 1"]
    lines += [
        line for at in range(nodes) for line in (f"mc_node_create 0 {ports}", f"mc_node_associate 1 {at}")
    ]
    with pytest.raises(FileError, match=f"clone sessions make more than {replication.MOST_COPIES} copies"):
        carried_out(tmp_path, "basic_l3", *lines, "mirroring_add_mc 1 1")


def test_cells(tmp_path: Path) -> None:
    registers = carried_out(
        tmp_path,
        "registers",
        "register_write packets_seen 3 5",
        "register_write packets_seen 3 6",
        "register_write RegisterIngress.sums 0 0xffffffffffff",
        "register_write narrow_cells 1 1",
        "register_reset narrow_cells",
    )
    cells = [update.entity.register_entry for update in registers]
    assert [(cell.index.index, cell.data.bitstring.hex()) for cell in cells] == [(3, "06"), (0, "ff" * 6)]
    meters = carried_out(
        tmp_path,
        "meters",
        "meter_array_set_rates port_meter 0.5:10 1:20",
        "meter_set_rates port_meter 2 0.000001:1 0.5:2",
        "table_add flows metered 5 => 1",
        "meter_set_rates entry_meter 0 1:1 2:2",
    )
    array, cell, entry = (update.entity for update in meters)
    assert not array.meter_entry.HasField("index") and array.meter_entry.config.cir == 500_000
    rates = cell.meter_entry.config
    assert (rates.cir, rates.cburst, rates.pir, rates.pburst) == (1, 1, 500_000, 2)
    assert entry.table_entry.meter_config.pir == 2_000_000
    counters = carried_out(
        tmp_path, "counters", "counter_write both_by_port 1 2 3", "counter_reset bytes_by_index"
    )
    (count,) = (update.entity.counter_entry for update in counters)
    assert (count.index.index, count.data.packet_count, count.data.byte_count) == (1, 2, 3)
    sets = carried_out(
        tmp_path,
        "value_sets",
        "pvs_add tunnel_types 0x6558",
        "pvs_add tunnel_types 7",
        "pvs_remove tunnel_types 7",
        "pvs_remove tunnel_types 8",
    )
    (values,) = (update.entity.value_set_entry for update in sets)
    assert [member.match[0].exact.value.hex() for member in values.members] == ["6558"]


def test_negative_values_of_registers(tmp_path: Path) -> None:
    """As simple_switch_CLI takes them: two's complement, which keys and parameters are not there."""
    updates = carried_out(
        tmp_path, "registers", "register_write narrow_cells 5 -1", "register_write sums 0 -5"
    )
    values = [update.entity.register_entry.data.bitstring.hex() for update in updates]
    assert values == ["7f", "fffffffffffb"]


def test_all_of_a_direct_meter_or_counter(tmp_path: Path) -> None:
    """What is written for all entries holds for those that are added later, too."""
    meters = carried_out(
        tmp_path,
        "meters",
        "table_add flows metered 5 => 1",
        "table_add flows metered 6 => 1",
        "meter_set_rates entry_meter 0 1:1 2:2",
        "meter_array_set_rates entry_meter 3:1 4:1",
        "meter_set_rates entry_meter 1 5:1 6:1",
        "table_add flows metered 7 => 1",
    )
    rates = [update.entity.table_entry.meter_config.cir for update in meters]
    assert rates == [3_000_000, 5_000_000, 3_000_000]
    counters = carried_out(
        tmp_path,
        "counters",
        "table_add by_group forward 1 => 3",
        "counter_write group_hits 0 1 2",
        "counter_reset group_hits",
    )
    assert [update.entity.table_entry.HasField("counter_data") for update in counters] == [False]


def test_rates_below_one_a_second(tmp_path: Path) -> None:
    """They are not rounded to no rate at all, and what is rounded is named."""
    updates = carried_out(
        tmp_path,
        "meters",
        "meter_array_set_rates flow_meter 0.0000004:1 0.0000025:1",
        "meter_set_rates flow_meter 1 0:0 0.000001:1",
    )
    rates = [update.entity.meter_entry.config for update in updates]
    assert [(rate.cir, rate.pir) for rate in rates] == [(1, 2), (0, 1)]
    assert [note.partition(": ")[2] for note in updates.notes] == [
        "line 1: rates are rounded: P4Runtime has whole numbers per second"
    ]


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    updates = carried_out(
        tmp_path,
        "basic_l3",
        "show_tables",
        "set_queue_rate 100 1",
        "// table_add nothing",
        "  ",
        "table_dump route",
        "set_queue_depth 5",
        "mirroring_add 1 1",
        "table_indirect_set_default route 0",
    )
    notes = [note.removeprefix(f"{tmp_path / 'commands.txt'}: ") for note in updates.notes]
    assert len(updates) == 1 and len(notes) == 4
    assert notes[0].startswith("line 2: set_queue_rate is left out: ") and "--port-rate" in notes[0]
    assert notes[1].startswith("line 6: set_queue_depth is left out: ") and "--queue-depth" in notes[1]
    assert notes[2].startswith("line 8: table_indirect_set_default is left out: P4Runtime cannot")
    assert notes[3] == "commands that only read are passed over: 2"


@pytest.mark.parametrize(
    ("program", "line", "said"),
    [
        ("match_kinds", "table_add nope set_lpm 1 => 2", "no table named 'nope'"),
        ("match_kinds", "table_add lpm_match set_exact 10.0.0.0/8 => 1", "no action of table"),
        ("match_kinds", "table_add lpm_match", "expected table_add TABLE ACTION [KEY ...], found 1 arguments"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0.0/8 1", "expected => after the key"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0.0 => 1", "expected VALUE/..., found '10.0.0.0'"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0.0/33 => 1", "not a prefix length of 0 to 32"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0/8 => 1", "is not an IPv4 address"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0.0/8 => 256", "256' does not fit bit<8>"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0.0/8 =>", "missing parameters: value"),
        ("match_kinds", "table_add lpm_match set_lpm 10.0.0.0/8 => 1 2", "takes 1 values, found 2"),
        ("match_kinds", "table_add exact_match set_exact 1 2 => 3", "has 3 key fields (exact8 exact3 valid), found 2"),
        ("match_kinds", "table_add ternary_match set_ternary 1 1&&&1 => 1 1", "expected VALUE&&&..., found '1'"),
        ("match_kinds", "table_add ternary_match set_ternary 1&&&1 1&&&1 =>", "needs a priority at the end"),
        ("match_kinds", "table_add ternary_match set_ternary 1&&&1 1&&&1 => 1 x", "priority: 'x' is not a whole number"),
        ("match_kinds", "table_add ternary_match set_ternary 1&&&1 1&&&1 => 1 2147483647", "priority"),
        ("match_kinds", "table_add range_match set_range 5->4 1->1 => 1 1", "is above"),
        ("match_kinds", "table_add optional_match set_optional 5&&&3 0&&&0 => 1 1", "a mask of all ones, or of zeros"),
        ("match_kinds", "table_delete lpm_match 0", "has the handle 0"),
        ("match_kinds", "table_indirect_add lpm_match 10.0.0.0/8 => 0", "has no action profile"),
        ("action_profiles", "table_add route set_port 10.0.0.0/8 => 1", "use table_indirect_add"),
        ("action_profiles", "table_set_default route set_port 1", "P4Runtime cannot set the default entry"),
        ("action_profiles", "act_prof_create_group rewrites", "has no selector"),
        ("action_profiles", "act_prof_add_member_to_group next_hops 0 0", "has the handle 0"),
        ("registers", "register_write packets_seen 256 1", "index: '256' is not a whole number from 0 to 255"),
        ("registers", "register_write narrow_cells 0 128", "does not fit bit<7>"),
        ("meters", "meter_set_rates port_meter 0 1:1", "expected two rates as RATE:BURST, found 1"),
        ("meters", "meter_set_rates port_meter 0 nan:1 1:1", "expected RATE:BURST"),
        ("value_sets", "pvs_add marked_tunnels 1", "has 2 fields, expected 1"),
        ("basic_l3", "mc_node_associate 1 0", "no multicast group 1 in this file"),
        ("basic_l3", "mc_node_create 0 1 | 2", "have no LAGs"),
        ("basic_l3", "mc_node_create 0 1 2 1", "port 1 is given twice"),
        ("basic_l3", "mc_node_create x", "instance: 'x' is not a whole number"),
        ("basic_l3", "tabel_add route drop", "no command 'tabel_add'; did you mean table_add?"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line(tmp_path: Path, program: str, line: str, said: str) -> None:
    with pytest.raises(FileError) as caught:
        carried_out(tmp_path, program, "# before", "show_tables", line)
    assert str(caught.value).startswith(f"{tmp_path / 'commands.txt'}: line 3: ")
    assert said in str(caught.value) and "\n" not in str(caught.value)
