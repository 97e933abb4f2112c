# SPDX-License-Identifier: Apache-2.0
"""The end comes at once, whatever is under way, and leaves nothing behind; other signals do no harm."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from finsy.proto import p4r, p4r_grpc

from tailrace.bmv2.dataplane import Dataplane, DataplaneError
from tailrace.switch.daemon.cli import main
from tailrace.switch.p4runtime import program_compiler
from tests.processes import running
from tests.switch.bmv2_builder import Builder, call, const, field
from tests.switch.daemon.primary import ELECTION_ID, Primary
from tests.switch.daemon.test_cli import COMMAND, LONG_S, PROGRAM, free_port

SIZES = {"AllIngress.words": 300_000}
PROMPT_S = 20.0
"""Far more than the second that it takes at most on a machine with nothing else to do."""


@dataclass
class Running:
    """A switch in a process of its own."""

    process: subprocess.Popen[str]
    address: str
    scratch: Path

    def ready(self) -> None:
        with grpc.insecure_channel(self.address) as channel:
            grpc.channel_ready_future(channel).result(timeout=LONG_S)

    def end(self, *signs: signal.Signals) -> None:
        """Sends signals and checks how the process ends."""
        for sign in signs:
            self.process.send_signal(sign)
        begin = time.monotonic()
        _, err = self.process.communicate(timeout=PROMPT_S)
        assert self.process.returncode == 0, err
        assert "Traceback" not in err and "rror" not in err, err
        assert time.monotonic() - begin < PROMPT_S
        until(lambda: not self.left())  # who watches a compiler takes a moment longer

    def left(self) -> list[Path]:
        """Files that nobody needs any more."""
        built = [
            path for path in self.scratch.rglob("*") if ".build" in path.name or "tailrace-" in path.name
        ]
        return [path for path in built if path.suffix != ".so"] + list((self.scratch / "tmp").iterdir())


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts switches that put files where the test finds them."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "tmp").mkdir()

    def make(*words: str, **environment: str) -> Running:
        address = f"127.0.0.1:{free_port()}"
        command = [
            *COMMAND,
            *(words or ("--no-p4",)),
            "--device-id",
            "1",
            "--",
            "--grpc-server-addr",
            address,
        ]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(tmp_path / "tmp"), **environment},
        )
        started.append(process)
        return Running(process, address, tmp_path)

    yield make
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=LONG_S)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + LONG_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(
    "signs",
    [
        (signal.SIGTERM,),
        (signal.SIGINT,),
        (signal.SIGHUP,),
        (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM),
    ],
)
def test_it_ends_during_a_read_that_nobody_takes(start: Start, signs: tuple[signal.Signals, ...]) -> None:
    """With a push, a write of all cells and streams besides."""
    switch = start()
    switch.ready()
    primary = Primary(switch.address, SIZES)
    primary.push()
    request = p4r.Entity()
    request.register_entry.SetInParent()
    calls = [primary.stub.Read(p4r.ReadRequest(device_id=1, entities=[request])) for _ in range(5)]
    next(iter(calls[0]))

    def write() -> None:
        while True:
            try:
                primary.fill("AllIngress.words")
            except (grpc.RpcError, ValueError):
                return

    writer = threading.Thread(target=write)
    writer.start()
    switch.end(*signs)
    writer.join(LONG_S)
    primary.close()


@contextmanager
def pushing(switch: Running) -> Iterator[Running]:
    """While the switch compiles what a client has pushed, which ends with the switch."""
    switch.ready()
    primary = Primary(switch.address, SIZES)

    def push() -> None:
        with pytest.raises(grpc.RpcError):
            primary.push()

    pusher = threading.Thread(target=push)
    pusher.start()
    # a folder may vanish while it is searched: of os.walk that is no error
    until(lambda: any("compiling" in files for _, _, files in os.walk(switch.scratch / "cache")))
    yield switch
    pusher.join(LONG_S)
    primary.close()


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_during_a_compilation(
    start: Start, slow_compiler: dict[str, str], sign: signal.Signals
) -> None:
    """Of a program that a client has sent: the compiler ends, too, and what it was building is gone."""
    with pushing(start(**slow_compiler)) as switch:
        with grpc.insecure_channel(switch.address) as channel:  # others are served meanwhile
            assert p4r_grpc.P4RuntimeStub(channel).Capabilities(p4r.CapabilitiesRequest(), timeout=LONG_S)
        switch.end(sign)


@pytest.mark.parametrize("how", ["cancelled", "dethroned"])
def test_a_push_ends_with_its_client(start: Start, slow_compiler: dict[str, str], how: str) -> None:
    """Its compiler as well, which would take minutes: the next push starts at once."""
    switch = start(**slow_compiler)
    switch.ready()
    primary = Primary(switch.address, SIZES)
    request = p4r.SetForwardingPipelineConfigRequest(device_id=1, action=3, config=primary.config)
    request.election_id.low = ELECTION_ID
    compiler = ("tailrace.switch.p4runtime.program_compiler", str(switch.process.pid))
    session = None  # it lasts as long as somebody has it
    call = primary.stub.SetForwardingPipelineConfig.future(request)
    # a folder may vanish while it is searched: of os.walk that is no error
    until(lambda: any("compiling" in files for _, _, files in os.walk(switch.scratch / "cache")))
    (first,) = running(*compiler)
    if how == "cancelled":
        call.cancel()
    else:
        request.election_id.low += 1
        successor = p4r.StreamMessageRequest()
        successor.arbitration.device_id = 1
        successor.arbitration.election_id.CopyFrom(request.election_id)
        forever = threading.Event()

        def messages() -> Iterator[p4r.StreamMessageRequest]:
            yield successor
            forever.wait(LONG_S)

        session = primary.stub.StreamChannel(messages())
        next(iter(session))
        with pytest.raises(grpc.RpcError) as refused:
            call.result(LONG_S)
        assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED
    until(lambda: first not in running(*compiler))
    following = primary.stub.SetForwardingPipelineConfig.future(request)
    until(lambda: bool(running(*compiler)))
    assert not following.done()
    following.cancel()
    until(lambda: not running(*compiler) and not any((switch.scratch / "cache").rglob("compiling")))
    primary.close()
    switch.end(signal.SIGTERM)


def test_what_refused_calls_have_taken_goes_back(start: Start) -> None:
    """Within seconds, and without a search for cycles: pushes, Writes and first messages of streams of 20 MB."""
    switch = start()
    switch.ready()
    large = bytes(20_000_000)
    push = p4r.SetForwardingPipelineConfigRequest(device_id=1)
    push.config.p4_device_config = large
    write = p4r.WriteRequest(device_id=1)
    for _ in range(20):
        write.updates.add().entity.table_entry.metadata = large[:1_000_000]
    first = p4r.StreamMessageRequest()
    first.other.value = large
    with grpc.insecure_channel(switch.address, options=[("grpc.max_send_message_length", -1)]) as channel:
        stub = p4r_grpc.P4RuntimeStub(channel)
        before = resident_bytes(switch.process.pid)
        calls: list[Callable[[], object]] = [
            lambda: stub.SetForwardingPipelineConfig(push),
            lambda: stub.Write(write),
            lambda: list(stub.StreamChannel(iter([first]))),
        ]
        for call in calls * 8:
            with pytest.raises(grpc.RpcError):
                call()
        until(lambda: resident_bytes(switch.process.pid) < before + 2 * len(large))
    switch.end(signal.SIGTERM)


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_while_it_starts(start: Start, slow_compiler: dict[str, str], sign: signal.Signals) -> None:
    """While the program of the command line is compiled."""
    switch = start(str(PROGRAM), **slow_compiler)
    # a folder may vanish while it is searched: of os.walk that is no error
    until(lambda: any("compiling" in files for _, _, files in os.walk(switch.scratch / "cache")))
    switch.end(sign)


def test_a_program_that_takes_too_long_to_compile(
    slow_compiler: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit is the same as for one that a client pushes; nobody goes on with it."""
    for name, value in slow_compiler.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(program_compiler, "MOST_S", 2.0)
    assert main([str(PROGRAM)]) == 2
    out, err = capsys.readouterr()
    message = f"{PROGRAM}: the compiler ended or took longer than 2 s"
    assert ("", f"tailrace_switch_grpc: {message}\n") == (out, err)
    assert not running("tailrace.switch.p4runtime.program_compiler", str(os.getpid()))
    assert not any((tmp_path / "cache").rglob("compiling"))


def test_a_switch_that_is_killed_takes_its_compiler_along(
    start: Start, slow_compiler: dict[str, str]
) -> None:
    """SIGKILL leaves it no time to say so."""
    with pushing(start(**slow_compiler)) as switch:
        compiler = ("tailrace.switch.p4runtime.program_compiler", str(switch.process.pid))
        assert 1 == len(running(*compiler))
        switch.process.kill()
        until(lambda: not running(*compiler) and not any((switch.scratch / "cache").rglob("compiling")))


def busy(tmp_path: Path) -> Path:
    """A program that is at work for hours with each packet: a million times it hashes 50 kB."""
    b = Builder([("a", 16)])
    hashed = {"type": "calculation", "value": "c"}
    step = call("modify_field_with_hash_based_offset", field("in", "a"), const(0), hashed, const(1 << 16))
    b.run([step, call("_jump", const(0))])
    inputs = [{"type": "hexstr", "value": "0x1", "bitwidth": 4096}] * 100
    b.extra["calculations"] = [{"name": "c", "id": 0, "algo": "crc32", "input": inputs}]
    path = tmp_path / "busy.json"
    path.write_bytes(b.text())
    return path


def cpu_s(pid: int) -> float:
    """What a process has used of the processors."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_it_ends_while_the_data_plane_is_at_work(start: Start, tmp_path: Path) -> None:
    """The main thread waits for it, and Python's handlers for the main thread."""
    packets = f"127.0.0.1:{free_port()}"
    switch = start(str(busy(tmp_path)), "--dp-grpc-server-addr", packets)
    switch.ready()
    before = cpu_s(switch.process.pid)
    client = Dataplane(packets, 1, LONG_S)

    def send() -> None:
        with pytest.raises(DataplaneError):
            client.window([(0, bytes(64))])

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    until(lambda: cpu_s(switch.process.pid) > before + 2)
    switch.end(signal.SIGTERM)
    client.close()


def test_other_signals_do_no_harm(start: Start) -> None:
    """SIGUSR1 means nothing without --statistics; nor do SIGUSR2 and SIGPIPE."""
    switch = start()
    switch.ready()
    for sign in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE):
        switch.process.send_signal(sign)
    switch.ready()
    switch.end(signal.SIGTERM)


def test_nobody_need_read_what_it_says() -> None:
    """Its standard output is closed by whoever started it."""
    address = f"127.0.0.1:{free_port()}"
    words = [*COMMAND, str(PROGRAM), "--log-console", "--", "--grpc-server-addr", address]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with grpc.insecure_channel(address) as channel:
        grpc.channel_ready_future(channel).result(timeout=LONG_S)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PROMPT_S) == 0
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
