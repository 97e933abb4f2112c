# SPDX-License-Identifier: Apache-2.0
"""The run file: what a running network is and where its switches are, for commands that look at it.

    {"topology": "leaf-spine:leaves=2", "scheme": "flowcut", "target": "native", "tick_ns": 1000,
     "time_scale": 2500.0, "relay": "/run/user/1000/tailrace/current.sock",
     "switches": {"leaf1": {"address": "127.0.0.1:50051", "device_id": 1, "program": "flowcut"}}}

It is at $XDG_RUNTIME_DIR/tailrace/current.json, or at tailrace-UID/current.json in the folder for temporary
files; the folder is the user's alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tailrace.p4rt.target import EmulatedPfc
from tailrace.words import SpecError, UnitError
from tailrace.words.files import read_text
from tailrace.words.watchdog import parse_watchdog
from tailrace.words.words import check_text

_NAME = "current.json"
_MOST_BYTES = 16 << 20
_MOST_SCALE = 1e12
_SWITCH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")


class RunFileError(SpecError):
    """There is no run file, or none that can be read."""


@dataclass(frozen=True, slots=True)
class RunSwitch:
    """Where a switch is: a gRPC target, its device id, and the program that it runs."""

    address: str
    device_id: int
    program: str


@dataclass(frozen=True, slots=True)
class RunFile:
    """A running network.

    topology, scheme: words; what runs is slower by `time_scale` (words.scale)
    relay: the socket through which its controller answers questions
    down: ends of links, (switch, port), that its controller takes for dead, where no relay tells
    out: paths that its controller has taken out, (switch, port, ns until they may come back), likewise
    pfc: PFC that the program does because the traffic manager has none
    """

    topology: str
    scheme: str
    target: str
    tick_ns: int
    relay: str | None
    switches: dict[str, RunSwitch]
    time_scale: float = 1.0
    down: tuple[tuple[str, int], ...] = ()
    out: tuple[tuple[str, int, int], ...] = ()
    pfc: EmulatedPfc | None = None


def default_path() -> Path:
    """Where the run file is, unless the user says otherwise."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "tailrace" / _NAME
    return Path(tempfile.gettempdir()) / f"tailrace-{os.getuid()}" / _NAME


def relay_path(path: Path | None = None) -> Path:
    """The socket that goes with a run file."""
    return (path or default_path()).with_suffix(".sock")


def write(path: Path | None, content: RunFile) -> Path:
    """Writes a run file, which readers see whole or not at all; where it is.

    Raises:
        RunFileError: it cannot be written.
    """
    place = path or default_path()
    try:
        if path is None:
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_folder(place.parent)
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            json.dump(asdict(content), file, indent=1)
        temporary.replace(place)
    except OSError as error:
        raise RunFileError(f"run file {place}: {error.strerror}") from None
    return place


def _check_folder(folder: Path) -> None:
    """Refuses a folder that somebody else made in the folder for temporary files."""
    if folder.stat().st_uid != os.getuid():
        raise RunFileError(f"run file: {folder} belongs to another user")


def remove(path: Path | None = None) -> None:
    """Removes a run file, if it is there."""
    with contextlib.suppress(OSError):
        (path or default_path()).unlink()


def read(path: Path | None = None) -> RunFile:
    """Reads a run file.

    Raises:
        RunFileError: there is none, or its content is no good; the line names the file and the key.
    """
    place = path or default_path()
    try:
        if path is None:
            _check_folder(place.parent)
        data = json.loads(read_text(place, _MOST_BYTES))
    except FileNotFoundError:
        raise RunFileError(
            f"no network is running (there is no {place}); start one, or give --run FILE"
        ) from None
    except OSError as error:
        raise RunFileError(f"run file {place}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise RunFileError(f"run file {place}: not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            where = f"line {error.lineno}: {error.msg}"
        else:
            where = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RunFileError(f"run file {place}: {where}") from None
    return _Reader(place).run_file(data)


class _Reader:
    """Checks the content of a file."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def _take(self, data: Any, where: str, key: str, kind: type | tuple[type, ...], expected: str) -> Any:
        name = f"{where}.{key}" if where else key
        if not isinstance(data, dict) or key not in data:
            raise RunFileError(f"run file {self._place}: {name} is missing")
        value = data[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RunFileError(f"run file {self._place}: {name}: expected {expected}")
        if isinstance(value, str):
            check_text(value, f"run file {self._place}: {name}")
        return value

    def run_file(self, data: Any) -> RunFile:
        switches = self._take(data, "", "switches", dict, "an object")
        for name in switches:
            if _SWITCH.fullmatch(name) is None:
                raise RunFileError(f"run file {self._place}: switches: {name[:40]!r} is no name of a switch")
        return RunFile(
            topology=self._take(data, "", "topology", str, "a text"),
            scheme=self._take(data, "", "scheme", str, "a text"),
            target=self._take(data, "", "target", str, "a text"),
            tick_ns=self._take(data, "", "tick_ns", int, "a whole number"),
            relay=self._take(data, "", "relay", (str, type(None)), "a path or null"),
            switches={name: self._switch(f"switches.{name}", item) for name, item in switches.items()},
            time_scale=self._scale(data),
            down=self._down(data),
            out=self._out(data),
            pfc=self._pfc(data),
        )

    def _scale(self, data: Any) -> float:
        if "time_scale" not in data:
            return 1.0
        scale: float = self._take(data, "", "time_scale", (int, float), "a number")
        if not 0 < scale <= _MOST_SCALE:
            raise RunFileError(f"run file {self._place}: time_scale: expected a number above 0")
        return float(scale)

    def _down(self, data: Any) -> tuple[tuple[str, int], ...]:
        ends = self._take(data, "", "down", list, "a list") if "down" in data else []
        for end in ends:
            if not (isinstance(end, list) and list(map(type, end)) == [str, int]):
                raise RunFileError(f"run file {self._place}: down: expected pairs of a switch and a port")
        return tuple((switch, port) for switch, port in ends)

    def _out(self, data: Any) -> tuple[tuple[str, int, int], ...]:
        paths = self._take(data, "", "out", list, "a list") if "out" in data else []
        for path in paths:
            if not (isinstance(path, list) and list(map(type, path)) == [str, int, int]):
                raise RunFileError(f"run file {self._place}: out: expected a switch, a port and a time each")
        return tuple((switch, port, left_ns) for switch, port, left_ns in paths)

    def _pfc(self, data: Any) -> EmulatedPfc | None:
        if not isinstance(data, dict) or data.get("pfc") is None:
            return None
        found = self._take(data, "", "pfc", dict, "an object or null")
        xoff, xon = (self._take(found, "pfc", key, int, "bytes") for key in ("xoff_bytes", "xon_bytes"))
        if "watchdog" not in found:
            return EmulatedPfc(xoff, xon)
        watchdog = self._take(found, "pfc", "watchdog", str, "a text")
        try:
            parse_watchdog(watchdog)
        except UnitError as error:
            raise RunFileError(f"run file {self._place}: pfc: watchdog: {error}") from None
        return EmulatedPfc(xoff, xon, watchdog)

    def _switch(self, where: str, data: Any) -> RunSwitch:
        return RunSwitch(
            address=self._take(data, where, "address", str, "a text"),
            device_id=self._take(data, where, "device_id", int, "a whole number"),
            program=self._take(data, where, "program", str, "a text"),
        )
