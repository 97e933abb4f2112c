# SPDX-License-Identifier: Apache-2.0
"""The controller's socket for inspection commands."""

from __future__ import annotations

import asyncio
import json
import socket
import tempfile
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tailrace.controller.inband.relay import MAX_INDEX, Registers, RelayClient, RelayError, RelayServer
from tailrace.p4rt.errors import NoResponseError, UnreachableError

TIMEOUT_S = 60.0


async def echo(switch: str, op: str, index: int) -> bytes:
    return f"{switch} {op} {index}".encode()


async def silent(switch: str, op: str, index: int) -> bytes:
    raise TimeoutError


async def gone(switch: str, op: str, index: int) -> bytes:
    raise UnreachableError(switch, "no answer at 127.0.0.1:1")


def serving(
    ask, use: Callable[[Path], object], down=frozenset, suppressed=tuple, registers: Registers | None = None
) -> object:
    """What `use` returns in a thread while a relay serves."""

    async def run() -> object:
        with tempfile.TemporaryDirectory(prefix="relay-") as folder:
            path = Path(folder) / "r.sock"
            server = RelayServer(path, ask, down, suppressed, registers)
            await server.start()
            try:
                return await asyncio.wait_for(asyncio.to_thread(use, path), TIMEOUT_S)
            finally:
                await server.stop()
                assert not path.exists()

    return asyncio.run(run())


def test_answers_come_for_every_index() -> None:
    def use(path: Path) -> dict[int, bytes]:
        with RelayClient(path) as client:
            first = dict(client.ask("leaf1", "READ_PORT", range(100)))
            assert dict(client.ask("leaf2", "READ_FLOWS", [])) == {}
            return first

    assert serving(echo, use) == {index: f"leaf1 READ_PORT {index}".encode() for index in range(100)}


def test_a_switch_is_not_flooded() -> None:
    """However many indices a request has, two questions are on their way together: what the controller itself asks
    the switch waits behind no more."""
    waiting: list[asyncio.Future[None]] = []
    most = 0

    async def count(switch: str, op: str, index: int) -> bytes:
        nonlocal most
        mine = asyncio.get_running_loop().create_future()
        waiting.append(mine)
        most = max(most, len(waiting))
        # answered once all that may be asked has been
        for _ in range(50):
            await asyncio.sleep(0)
        waiting.remove(mine)
        return b""

    def use(path: Path) -> int:
        with RelayClient(path) as client:
            return len(dict(client.ask("leaf1", "READ_FLOWS", range(64))))

    assert serving(count, use) == 64
    assert most == 2


def test_nothing_is_asked_for_a_client_that_has_gone() -> None:
    asked: list[int] = []
    gone_away = threading.Event()

    async def note(switch: str, op: str, index: int) -> bytes:
        asked.append(index)
        if index:
            await asyncio.to_thread(gone_away.wait, TIMEOUT_S)
        return b"x" * 10_000

    def use(path: Path) -> None:
        with RelayClient(path) as client:
            next(iter(client.ask("leaf1", "READ_FLOWS", range(1000))))
        gone_away.set()
        # the server has seen the end of the first client by the time that it has served another one
        with RelayClient(path) as other:
            assert len(dict(other.ask("leaf1", "READ_PORT", [0] * 100))) == 1

    serving(note, use)
    assert len(asked) - asked.count(0) < 200


def test_the_cells_of_a_register() -> None:
    """None where the controller reads no registers; and the connection serves on."""

    def use(path: Path) -> tuple[object, ...]:
        with RelayClient(path) as client:
            return client.cells("leaf1", "untracked_bytes"), dict(client.ask("leaf1", "READ_PORT", [7]))

    read = {("leaf1", "untracked_bytes"): list(range(4096))}
    served = serving(echo, use, registers=lambda switch, register: read[switch, register])
    assert served == (list(range(4096)), {7: b"leaf1 READ_PORT 7"})
    assert serving(echo, use) == ([], {7: b"leaf1 READ_PORT 7"})


def test_a_register_that_cannot_be_read() -> None:
    def refuse(switch: str, _register: str) -> list[int]:
        if switch == "leaf2":
            raise OSError("simple_switch_grpc: no register x\nat all")
        if switch == "leaf4":
            raise ConnectionRefusedError(111, "Connection refused")
        raise KeyError(switch)

    def use(path: Path) -> list[str]:
        problems = []
        for switch in ("leaf2", "leaf3", "leaf4", ""):
            with RelayClient(path) as client, pytest.raises(RelayError) as caught:
                client.cells(switch, "x")
            problems.append(str(caught.value))
        return problems

    assert serving(echo, use, registers=refuse) == [
        "leaf2: simple_switch_grpc: no register x at all",
        "leaf3: the topology has no such switch",
        "leaf4: Connection refused",
        "op 'REGISTER' needs a switch",
    ]


def test_what_is_down_and_what_is_out_is_told() -> None:
    """Links that are down, paths that are out and for how long yet; and the connection serves on."""

    def use(path: Path) -> tuple[object, ...]:
        with RelayClient(path) as client:
            return client.suppressed(), client.down(), dict(client.ask("leaf1", "READ_PATH", [7]))

    down = frozenset({("leaf1", 3), ("spine1", 1)})
    out = [("leaf2", 9, 0), ("leaf1", 3, 1_500_000)]
    served = serving(echo, use, lambda: down, lambda: out)
    assert served == (tuple(sorted(out)), down, {7: b"leaf1 READ_PATH 7"})


@pytest.mark.parametrize(
    ("ask", "text"),
    [(silent, "leaf1: no answer (index 4)"), (gone, "leaf1: no answer at 127.0.0.1:1")],
)
def test_a_switch_that_does_not_answer(ask: Callable[..., Awaitable[bytes]], text: str) -> None:
    def use(path: Path) -> str:
        with RelayClient(path) as client, pytest.raises(NoResponseError) as caught:
            list(client.ask("leaf1", "READ_PORT", [4]))
        return str(caught.value)

    assert serving(ask, use) == text


@pytest.mark.parametrize("op", ["SEND", "read_port"])
def test_nothing_that_changes_a_switch_is_passed_on(op: str) -> None:
    asked = []

    async def ask(switch: str, op: str, index: int) -> bytes:
        asked.append(op)
        return b""

    def use(path: Path) -> None:
        with RelayClient(path) as client, pytest.raises(RelayError, match="is not for reading"):
            list(client.ask("leaf1", op, [1]))

    serving(ask, use)
    assert asked == []


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"nonsense\n",
        b"[]\n",
        b"null\n",
        b'{"op": "READ_PORT"}\n',
        b'{"op": "READ_PORT", "switch": 7, "indices": []}\n',
        b'{"op": "READ_PORT", "switch": "s", "indices": 7}\n',
        b'{"op": "READ_PORT", "switch": "s", "indices": [true]}\n',
        b'{"op": "READ_PORT", "switch": "s", "indices": [-1]}\n',
        json.dumps({"op": "READ_PORT", "switch": "s", "indices": [MAX_INDEX + 1]}).encode() + b"\n",
        b"[" * 100_000 + b"\n",
        b"x" * (2 << 20) + b"\n",
    ],
)  # fmt: skip
def test_bad_requests_end_the_connection_and_nothing_else(request_: bytes) -> None:
    def use(path: Path) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(TIMEOUT_S)
            client.connect(str(path))
            try:
                client.sendall(request_)
                client.shutdown(socket.SHUT_WR)
                answer = client.makefile("rb").read()
            except ConnectionError:
                answer = b""  # closed before it was read to its end
        assert answer == b"" or "error" in json.loads(answer)
        with RelayClient(path) as other:
            assert dict(other.ask("s", "READ_PORT", [1])) == {1: b"s READ_PORT 1"}

    serving(echo, use)


def test_only_the_owner_may_use_it() -> None:
    assert serving(echo, lambda path: path.stat().st_mode & 0o777) == 0o600


def test_a_socket_left_behind_is_replaced_and_a_live_one_is_not() -> None:
    async def run() -> None:
        with tempfile.TemporaryDirectory(prefix="relay-") as folder:
            path = Path(folder) / "r.sock"
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
                dead.bind(str(path))
            first = RelayServer(path, echo)
            await first.start()
            with pytest.raises(RelayError, match="another controller"):
                await RelayServer(path, echo).start()
            await first.stop()

    asyncio.run(run())


def test_paths_that_cannot_be_used() -> None:
    with tempfile.TemporaryDirectory(prefix="relay-") as folder:
        for path in (Path(folder) / "missing" / "r.sock", Path(folder) / ("x" * 200)):
            with pytest.raises(RelayError) as caught:
                asyncio.run(RelayServer(path, echo).start())
            assert "cannot listen" in str(caught.value)
            with pytest.raises(RelayError):
                RelayClient(path)
