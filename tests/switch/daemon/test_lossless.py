# SPDX-License-Identifier: Apache-2.0
"""PFC of the switch as a program: its words, its counts, and pause frames on real interfaces."""

from __future__ import annotations

import json
import signal
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from tailrace.spec.watchdog import NO_WATCHDOG, Watchdog, of_host, parse_watchdog
from tailrace.switch.compiler import load_program
from tailrace.switch.core import BufferConfig, PfcConfig, PfcLimits, SwitchConfig, V1ModelSwitch
from tailrace.switch.daemon.command_line import make_parser, parse_options
from tailrace.switch.daemon.lossless import (
    WatchdogSpec,
    packet_bytes,
    parse_buffer,
    parse_pfc,
    parse_port_watchdog,
    pfc_configs,
)
from tailrace.switch.daemon.options import OptionError
from tailrace.switch.p4runtime.statistics import write_statistics
from tests.eventually import LONG_S, eventually
from tests.switch.daemon.test_cli import COMMAND, PROGRAM


def test_memory_for_packets() -> None:
    """A share of what --memory gives, and more where a buffer needs it."""
    gib = 1 << 30
    assert packet_bytes(8 * gib, None) == 128 << 20
    assert packet_bytes(256 << 20, None) == 64 << 20
    assert packet_bytes(8 * gib, BufferConfig(9_000_000)) == 16 * 9_000_000
    assert packet_bytes(8 * gib, BufferConfig(gib)) == 2 * gib


def test_words() -> None:
    """With and without a port; sizes with units."""
    sizes = "xoff=96KiB,xon=64KiB,headroom=48KB"
    assert parse_pfc(f"3,4:{sizes}") == (None, PfcConfig((3, 4), 96 << 10, 64 << 10, 48_000))
    assert parse_pfc(f"7:0:{sizes},quanta=9") == (7, PfcConfig((0,), 96 << 10, 64 << 10, 48_000, 9))
    assert parse_buffer("9MB") == BufferConfig(9_000_000)
    assert parse_buffer("1MiB,alpha=0.125") == BufferConfig(1 << 20, Fraction(1, 8))
    assert parse_buffer("9MB,alpha=2") == BufferConfig(9_000_000, Fraction(2))
    assert parse_buffer("9MB,port=8KB") == BufferConfig(9_000_000, None, 8000)


@pytest.mark.parametrize("text", ["x:0:xoff=1,xon=1,headroom=1", "a:xoff=1,xon=1,headroom=1", "0:xoff", ""])
def test_bad_words(text: str) -> None:
    """As argparse wants to hear it."""
    with pytest.raises(ValueError):
        parse_pfc(text)


def test_what_is_said_of_a_port_is_added_to_what_is_said_of_all() -> None:
    """What comes later wins."""
    words = (
        "0,3:xoff=9,xon=5,headroom=1",
        "2:3:xoff=7,xon=7,headroom=2,quanta=8",
        "3:xoff=6,xon=4,headroom=3",
    )
    configs = pfc_configs([parse_pfc(text) for text in words])
    common = {0: PfcLimits(9, 5, 1), 3: PfcLimits(6, 4, 3)}
    assert configs == {
        None: PfcConfig((0, 3), 6, 4, 3, 0xFFFF, common),
        2: PfcConfig((0, 3), 7, 7, 2, 8, {**common, 3: PfcLimits(7, 7, 2)}),
    }
    assert pfc_configs([]) == {}


def test_counts_are_a_file_that_is_never_half_written(tmp_path: Path) -> None:
    """What a pause does is in it, and nothing of priorities that PFC has not touched."""
    path = tmp_path / "x.json"
    pause = bytes.fromhex("0180c2000001 020000000000 8808 0101 0001 0064") + bytes(40)
    config = SwitchConfig(port_rate_bps=512_000_000_000, pfc=PfcConfig((0,), 10, 10, 10))
    with V1ModelSwitch(load_program(PROGRAM.read_bytes()), config) as switch:
        switch.inject(1, pause, 0)
        switch.inject(1, pause[:20], 0)
        write_statistics(path, switch, (1, 2), 70)
    statistics = json.loads(path.read_text())
    assert (statistics["time_ns"], statistics["drops"]) == (70, {"pfc_frame": 1, "mac_control": 1})
    assert (statistics["ports"]["1"]["pfc_received"], statistics["ports"]["1"]["pfc_ignored"]) == (1, 1)
    assert statistics["ports"]["1"]["pfc"].keys() == {"0"}
    assert statistics["ports"]["1"]["pfc"]["0"]["paused_ns"] == 70
    assert (statistics["ports"]["2"]["pfc"], statistics["buffer"]["held_bytes"]) == ({}, 0)
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]


def test_a_switch_writes_its_counts_when_asked_and_at_its_end(tmp_path: Path) -> None:
    """SIGUSR1 does not end it, and each time the file is a new one."""
    path = tmp_path / "counts.json"
    words = [*COMMAND, "--no-p4", "--pfc", "0:xoff=8KiB,xon=4KiB,headroom=9KB", "--buffer", "1MB,port=2KB"]
    words += ["--statistics", str(path), "--", "--grpc-server-addr", f"unix:{tmp_path}/s"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Server listening")
        times = []
        for number in (signal.SIGUSR1, signal.SIGTERM):
            process.send_signal(number)
            if number == signal.SIGTERM:
                _, err = process.communicate(timeout=LONG_S)
                assert (process.returncode, err) == (0, "")
            else:
                assert eventually(path.exists)
            times.append(json.loads(path.read_text())["time_ns"])
    assert times[0] < times[1]
    assert json.loads(path.read_text())["buffer"]["bytes"] == 1_000_000


# ---- the watchdog's words ----


def test_watchdogs_as_words() -> None:
    """What is left out is as it is without any; and back."""
    parsed = parse_watchdog("detect=2ms,restore=10us,share=5%,action=ignore")
    assert parsed == Watchdog(2_000_000, 10_000, 0.05, "ignore")
    assert parse_watchdog("detect=2ms") == Watchdog(2_000_000)
    assert parse_watchdog("off") == NO_WATCHDOG
    for watchdog in (parsed, Watchdog(), NO_WATCHDOG, Watchdog(7, 9, 1e-6), of_host(10**10, 65_536)):
        assert parse_watchdog(watchdog.spec()) == watchdog
    assert parse_port_watchdog("1,2:host,action=ignore") == WatchdogSpec(
        (1, 2), Watchdog(action="ignore"), host=True
    )
    assert parse_port_watchdog("off") == WatchdogSpec(None, NO_WATCHDOG)


@pytest.mark.parametrize(
    "text",
    [
        *("", "on", "detect", "detect=", "detect=0", "detect=-1s", "detect=1e9", "detect=9999999999s"),
        *("share=0", "share=101%", "share=nan", "share=inf", "share=1e-9", "action=", "action=pass"),
        *("detect=1s,detect=2s", "x:off", ":off", "1:2:off", "host,detect=1s", "host,", "hosts"),
    ],
)
def test_bad_words_of_a_watchdog(text: str) -> None:
    """As argparse wants to hear it."""
    with pytest.raises(ValueError):
        parse_port_watchdog(text)


def test_a_watchdog_belongs_to_its_ports() -> None:
    """What comes later wins; a host's follows from the port's rate and threshold."""
    specs = [parse_pfc(text) for text in ("0:xoff=50KB,xon=9,headroom=1", "2:0:xoff=100KB,xon=9,headroom=1")]
    words = ("detect=1s", "1,2:host", "3:off", "2,4:host,action=ignore", "2:host")
    rates = {1: 10**10, 2: 10**10, 3: 0, 4: 0}
    configs = pfc_configs(specs, [parse_port_watchdog(text) for text in words], rates)
    detected = {port: config.watchdog for port, config in configs.items()}
    assert detected == {
        None: None,
        1: of_host(10**10, 50_000),
        2: of_host(10**10, 100_000),
        3: NO_WATCHDOG,
        4: of_host(0, 50_000, "ignore"),
    }
    assert (of_host(10**10, 50_000).detect_ns, of_host(10**10, 50_000).share) == (40_000, 0.05)


def test_what_suits_a_host() -> None:
    """Its times are those of its port: ten times as slow, ten times as long; and they are bounded."""
    fast, slow = of_host(10**10, 50_000), of_host(10**9, 50_000)
    assert (slow.detect_ns, slow.restore_ns) == (10 * fast.detect_ns, 10 * fast.restore_ns)
    assert of_host(10**10, 0).detect_ns == of_host(10**10, 9216).detect_ns == 7373
    assert of_host(10**10, 1 << 40).detect_ns == 64 * fast.restore_ns
    assert of_host(0, 50_000) == fast


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--pfc-watchdog", "off"], "nothing is lossless without --pfc"),
        (["--pfc", "0:xoff=9,xon=1,headroom=1", "--pfc-watchdog", "3:host"], "there is no port 3"),
        (["--pfc", "1:0:xoff=9,xon=1,headroom=1", "--pfc-watchdog", "2:off"], "port 2 has no --pfc"),
        (["--pfc", "0:xoff=9,xon=1,headroom=1", "--pfc-watchdog", "detect=soon"], "'detect=soon' is not"),
    ],
)
def test_watchdogs_without_a_port(words: list[str], said: str) -> None:
    """One line says what is wrong."""
    ports = ["--no-p4", "-i", "1@veth1", "-i", "2@veth2"]
    with pytest.raises(OptionError, match=said):
        parse_options(make_parser(), [*ports, *words])
