# SPDX-License-Identifier: Apache-2.0
"""The command line: simple_switch_grpc's words in any order, one line for what is wrong, a prompt end."""

from __future__ import annotations

import logging
import re
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tailrace.cbuild.cache import VARIABLE
from tailrace.cbuild.errors import BuildError
from tailrace.switch.daemon.cli import _configure_log, main
from tailrace.switch.daemon.command_line import make_parser, parse_options
from tailrace.switch.daemon.options import OptionError
from tailrace.switch.daemon.ports import io_library, is_compiled

PROGRAM = Path(__file__).parents[2] / "programs" / "build" / "basic_l3.json"
COMMAND = [sys.executable, "-c", "from tailrace.switch.daemon.cli import main; raise SystemExit(main())"]
LONG_S = 60


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--no-such"], "--no-such"),
        (["missing.json"], "missing.json: No such file"),
        (["-i", "0@nosuchif", "--no-p4"], "nosuchif"),
        (["-i", "0@lo", "-i", "0@lo", "--no-p4"], "twice"),
        (["--no-p4", "--port-rate", "3parsecs"], "3parsecs"),
        (["--no-p4", "--pfc", "x"], "--pfc"),
        (["--no-p4", "--pfc", "0:xoff=1KiB,xon=1KiB,headroom=1KiB,quanta=0"], "--pfc"),
        (["--no-p4", "--pfc", "3:xoff=1KiB,xon=1KiB,headroom=1KiB"], "no queue of priority 3"),
        (["--no-p4", "--pfc", "4:0:xoff=1KiB,xon=1KiB,headroom=1KiB"], "no port 4"),
        (["--no-p4", "--buffer", "much"], "--buffer"),
        (["--no-p4", "--cpu-port", "511"], "drop port"),
        (["--no-p4", "--", "--grpc-server-addr", "nonsense"], "nonsense"),
        (["--no-p4", "--dp-grpc-server-addr", "here:99999"], "expected HOST:PORT or unix:PATH, found"),
        (["--no-p4", "--grpc-server-with-client-auth"], "needs --grpc-server-ssl"),
        (["--no-p4", "--strict"], "--device-id"),
        (["--no-p4", "--strict", "--device-id", "1", "--bmv2-compat"], "--bmv2-compat"),
        (["--no-p4", "--memory", "lots"], "--memory"),
        ([], "JSON file or --no-p4"),
        ([str(Path(__file__))], "not a JSON file"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    words: list[str], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(words)
    out, err = capsys.readouterr()
    assert "" == out
    assert 1 == err.count("\n"), err
    assert err.startswith("tailrace_switch_grpc: ")
    assert expected in err


@pytest.mark.parametrize(
    "words",
    [
        ["--device-id", "3", "-i", "1@lo", "p.json", "--", "--cpu-port", "255", "--priority-queues", "8"],
        [
            "--device-id=3",
            "--interface",
            "1@lo",
            "--",
            "--cpu-port",
            "255",
            "--priority-queues",
            "8",
            "p.json",
        ],
        ["p.json", "--cpu-port", "255", "--priority-queues", "8", "--device-id", "3", "-i", "1@lo"],
    ],
)
def test_both_sides_of_the_dashes_and_any_order_mean_the_same(words: list[str]) -> None:
    _, options = parse_options(make_parser(), words)
    assert (3, {1: "lo"}, 255, 8) == (
        options.device_id,
        dict(options.interfaces),
        options.cpu_port,
        options.priority_queues,
    )
    assert Path("p.json") == options.program


def test_what_tutorials_and_mininet_pass_is_accepted(tmp_path: Path) -> None:
    """SEMANTICS §3: options that cannot matter here are taken without a word; on Thrift some rely."""
    words = f"-i 1@s1-eth1 --pcap {tmp_path} --nanolog ipc:///tmp/bm-0-log.ipc --device-id 0 p.json"
    words += " --thrift-port 9090 --log-file x --log-flush --dump-packet-data 10000 -- --grpc-server-addr 0.0.0.0:50051"
    _, options = parse_options(make_parser(), words.split())
    assert (0, "0.0.0.0:50051") == (options.device_id, options.address)
    (warning,) = options.warnings
    assert warning.startswith("--thrift-port is ignored: there is no Thrift server;")
    assert "tailrace push" in warning


# What `simple_switch_grpc --help` (1.15.5) lists, and of simple_switch and of debug builds what that does not: a
# value to try, and how it is taken here; None: an option without value.
BMV2_OPTIONS = {
    "help": (None, "works"),
    "interface": ("1@lo", "works"),
    "pcap": (".", "works"),
    "use-files": ("0", "refused"),
    "packet-in": ("ipc:///tmp/in.ipc", "refused"),
    "thrift-port": ("9090", "told"),
    "device-id": ("7", "works"),
    "nanolog": ("ipc:///tmp/log.ipc", "quiet"),
    "log-console": (None, "works"),
    "log-file": ("x", "works"),
    "log-level": ("off", "works"),
    "log-flush": (None, "quiet"),
    "log-file-max-size": ("4096", "works"),
    "log-file-max-files": ("1", "works"),
    "notifications-addr": ("ipc:///tmp/told.ipc", "quiet"),
    "restore-state": ("state.bin", "refused"),
    "dump-packet-data": ("64", "works"),
    "version": (None, "works"),
    "json-version": (None, "works"),
    "no-p4": (None, "works"),
    "max-port-count": ("600", "quiet"),
    "load-modules": ("a.so,b.so", "told"),
    "disable-swap": (None, "told"),
    "grpc-server-addr": ("0.0.0.0:50051", "works"),
    "grpc-server-ssl": (None, "works"),
    "grpc-server-cacert": ("ca.pem", "works"),
    "grpc-server-cert": ("cert.pem", "works"),
    "grpc-server-key": ("key.pem", "works"),
    "grpc-server-with-client-auth": (None, "works"),
    "cpu-port": ("255", "works"),
    "drop-port": ("510", "works"),
    "dp-grpc-server-addr": ("0.0.0.0:50052", "works"),
    "priority-queues": ("8", "works"),
    "max-mc-groups": ("10", "works"),
    "max-l1-entries": ("10", "quiet"),
    "max-l2-entries": ("10", "quiet"),
    "enable-swap": (None, "quiet"),
    "debugger": (None, "told"),
    "debugger-addr": ("ipc:///tmp/debug.ipc", "told"),
    "warn-on-invalid-hdr-read": (None, "quiet"),
    "ret-zero-on-invalid-hdr-read": (None, "quiet"),
}
TLS = [
    "--grpc-server-ssl",
    "--grpc-server-cert",
    "c.pem",
    "--grpc-server-key",
    "k.pem",
    "--grpc-server-cacert",
    "a.pem",
]
NEEDED = {"log-flush": ["--log-file", "x"], "dump-packet-data": ["--log-console"]}


@pytest.mark.parametrize("name", BMV2_OPTIONS)
def test_every_option_of_bmv2_is_handled(name: str) -> None:
    """It works, or does nothing without a word, or with one, or is refused with what to do instead."""
    value, taken = BMV2_OPTIONS[name]
    words = [f"--{name}", *([] if value is None else [value])]
    needed = TLS if name.startswith("grpc-server-") and name != "grpc-server-addr" else NEEDED.get(name, [])
    parser = make_parser()
    if taken == "refused":
        with pytest.raises(OptionError, match=f"^--{name}: .+[,;] .+"):
            parse_options(parser, ["--no-p4", *words])
        return
    plain = parse_options(parser, ["--no-p4"])[1]
    given, options = parse_options(parser, ["--no-p4", *needed, *words])
    assert (taken == "told") == any(line.startswith(f"--{name} is ignored: ") for line in options.warnings)
    if name in ("help", "version", "json-version", "no-p4"):
        assert getattr(given, name.replace("-", "_"))
    elif taken == "works":
        assert options != plain
    elif not needed:
        assert replace(options, warnings=[]) == plain


def test_the_page_says_of_every_option_of_bmv2_what_it_does() -> None:
    page = (Path(__file__).parents[3] / "docs" / "switch" / "running.md").read_text()
    table = page.partition("\n## Options\n")[2].partition("### Of this switch only")[0]
    named = set(re.findall(r"`--([a-z0-9-]+)", table))
    assert set(BMV2_OPTIONS) - {"help"} <= named


@pytest.mark.parametrize("compiled", [True, False])
def test_a_first_start_says_that_it_compiles(
    compiled: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It listens only afterwards, which takes longer than some wait."""

    def end(*_: object) -> None:
        raise BuildError("that is all")

    monkeypatch.setattr("tailrace.switch.daemon.ports.is_compiled", lambda: compiled)
    monkeypatch.setattr("tailrace.switch.daemon.cli.V1ModelSwitch", end)
    assert main(["--no-p4"]) == 2
    said = "" if compiled else "tailrace_switch_grpc: compiling the core, once\n"
    assert capsys.readouterr().err == f"{said}tailrace_switch_grpc: that is all\n"


def test_is_compiled_looks_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    io_library()
    assert is_compiled()
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert not is_compiled()


def test_warnings_of_options_stand_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ignored may be why somebody waits."""
    log = logging.getLogger("tailrace")
    monkeypatch.setattr(log, "handlers", [])
    monkeypatch.setattr(log, "propagate", True)
    level = log.level
    _, options = parse_options(make_parser(), ["--no-p4", "--debugger", "--log-file", str(tmp_path / "log")])
    _configure_log(SimpleNamespace(set_log=lambda _log: None), options)
    for handler in log.handlers:
        handler.close()
    log.setLevel(level)
    assert options.warnings
    assert [
        line.endswith(options.warnings[0]) for line in (tmp_path / "log.txt").read_text().splitlines()
    ] == [True]


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == main(["--help"])
    assert "--port-rate" in capsys.readouterr().out
    assert 0 == main(["--version"])
    assert capsys.readouterr().out.strip()


@pytest.fixture
def running():
    """A switch on a free port of the loopback interface."""
    port = free_port()
    words = [*COMMAND, str(PROGRAM), "--device-id", "5", "--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield process, port
    if process.poll() is None:
        process.kill()
    process.communicate(timeout=LONG_S)


FAULTY = """
from tailrace.switch.p4runtime import service
from tailrace.switch.daemon.cli import main

def fault() -> None:
    raise RuntimeError("what nobody thought of")

service.capabilities = fault
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    ("words", "where"),
    [
        ([], "stderr"),
        (["--log-console", "-L", "error"], "stdout"),
        (["--log-file", "log", "-L", "info"], "log.txt"),
        (["--log-file", "log", "-L", "off"], None),
        (["-L", "off"], None),
    ],
)
def test_the_log_has_what_internal_errors_name(words: list[str], where: str | None, tmp_path: Path) -> None:
    """A client reads INTERNAL and that the log says more: so it does, wherever it was asked for."""
    port = free_port()
    command = [
        sys.executable,
        "-c",
        FAULTY,
        "--no-p4",
        *words,
        "--",
        "--grpc-server-addr",
        f"127.0.0.1:{port}",
    ]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
                grpc.channel_ready_future(channel).result(timeout=LONG_S)
                with pytest.raises(grpc.RpcError, match="see the switch's log") as caught:
                    p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=LONG_S)
                assert caught.value.code() == grpc.StatusCode.INTERNAL
        finally:
            process.terminate()
            out, err = process.communicate(timeout=LONG_S)
    texts = {"stdout": out, "stderr": err} | {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert [name for name, text in texts.items() if "RuntimeError: what nobody thought of" in text] == (
        [] if where is None else [where]
    )


def test_an_address_in_use_is_one_line(running) -> None:
    _, port = running
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=LONG_S)
    words = [*COMMAND, "--no-p4", "--", "--grpc-server-addr", f"127.0.0.1:{port}"]
    second = subprocess.run(words, capture_output=True, text=True, timeout=LONG_S, check=False)
    assert 2 == second.returncode
    assert [f"127.0.0.1:{port}" in line for line in second.stderr.splitlines()] == [True]


def test_p4info_needs_its_program() -> None:
    with pytest.raises(OptionError, match=r"^--p4info needs the program"):
        parse_options(make_parser(), ["--no-p4", "--p4info", "x"])
    assert parse_options(make_parser(), ["p.json", "--p4info", "x"])[1].p4info == Path("x")
