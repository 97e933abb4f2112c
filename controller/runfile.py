# SPDX-License-Identifier: Apache-2.0
"""The run file: a running network and the addresses of its switches, for inspection commands.

    {"topology": "leaf-spine:leaves=2", "scheme": "flowcut", "target": "native", "tick_ns": 1000,
     "time_scale": 2500.0, "relay": "/tmp/tailrace-run-1/relay.sock",
     "switches": {"leaf1": {"address": "127.0.0.1:50051", "device_id": 1, "program": "flowcut"}}}

It is a file NAME.json in $XDG_RUNTIME_DIR/tailrace, or in tailrace-UID in the folder for temporary files; no
other user may write to the folder.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tailrace.controller.inband.relay import listens
from tailrace.p4rt.target import MOST_DEVICE_ID, EmulatedPfc
from tailrace.spec import SpecError, plugins
from tailrace.spec.errors import FileError
from tailrace.spec.schema import read_json
from tailrace.spec.spec_string import MOST_CHARACTERS, check_text
from tailrace.spec.watchdog import parse_watchdog

RUN_FOLDER = "tailrace-run-"
"""How names of folders of Mininet runs begin, in the folder for temporary files."""
_MOST_BYTES = 16 << 20
_MOST_SCALE = 1e12

_Text = Annotated[str, Meta(max_length=MOST_CHARACTERS)]
_Name = Annotated[
    str, Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}\Z", description="the name of a switch")
]


class RunFileError(SpecError):
    """There is no run file, or none that can be read."""


class RunSwitch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a switch is: a gRPC target, its device id, and the program that it runs."""

    address: _Text
    device_id: Annotated[int, Meta(ge=0, description="a whole number from 0 to 2^64 - 1")]
    program: _Text

    def __post_init__(self) -> None:
        check_text(self.address, "address")
        check_text(self.program, "program")
        if self.device_id > MOST_DEVICE_ID:
            raise ValueError(f"device_id: expected at most {MOST_DEVICE_ID}, found {self.device_id}")


class RunFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A running network.

    topology: its spec; the running network is slower by the factor `time_scale` (spec.scale)
    scheme: its spec, or the resolved scheme as it runs (schemes.registry.resolved_of)
    relay: the socket through which its controller answers queries
    down: link ends (switch, port) that its controller takes for dead, if there is no relay
    suppressed: paths that its controller keeps out of the next-hop groups, because RLB's Algorithm 2 found
        them faulty; given if there is no relay. Each has the switch, the port, and the time in ns for which
        it stays unused at least
    pfc: PFC that the program emulates because the traffic manager has none
    channels: number of virtual channels, lossless priorities on links between switches: a packet takes the
        next priority at each switch, so that PFC cannot deadlock. 0: packets keep one priority
    plugins: plug-ins that the writer had loaded (spec.plugins.loaded)
    control: the socket by which commands change the network (control.py)
    """

    topology: _Text
    scheme: _Text | dict[str, Any]
    target: _Text
    tick_ns: Annotated[int, Meta(gt=0, description="a whole number of ns, more than 0")]
    relay: Annotated[_Text | None, Meta(description="a path or null")]
    switches: dict[_Name, RunSwitch]
    time_scale: Annotated[float, Meta(gt=0, le=_MOST_SCALE, description="a number above 0")] = 1.0
    down: tuple[Annotated[tuple[str, int], Meta(description="a switch and a port")], ...] = ()
    suppressed: tuple[
        Annotated[tuple[str, int, int], Meta(description="a switch, a port and a time")], ...
    ] = ()
    pfc: EmulatedPfc | None = None
    channels: int = 0
    plugins: tuple[_Text, ...] = ()
    control: Annotated[_Text | None, Meta(description="a path or null")] = None

    def __post_init__(self) -> None:
        for key in ("topology", "scheme", "target", "relay"):
            check_text(getattr(self, key) or "", key)
        for plugin in self.plugins:
            check_text(plugin, "plugins")
        if self.pfc is not None:
            parse_watchdog(self.pfc.watchdog)


def folder() -> Path:
    """The folder of this user's run files."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime or tempfile.gettempdir()) / ("tailrace" if runtime else f"tailrace-{os.getuid()}")


def made_folder() -> Path:
    """`folder`, which is made if it is not there. Raises RunFileError if it cannot be used."""
    try:
        folder().mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_folder(folder())
    except OSError as error:
        raise RunFileError(f"run file: {folder()}: {error.strerror}") from None
    return folder()


def running() -> dict[Path, RunFile]:
    """The run files of this user, the latest first, without those of processes that were killed.

    Raises:
        RunFileError: there is none, or other users may write into their folder.
    """
    if folder().is_symlink() or folder().exists():
        _check_folder(folder())
    runs = {}
    for path in sorted(folder().glob("*.json"), key=_time, reverse=True):
        with contextlib.suppress(RunFileError):
            run = read(path)
            if run.control is None or listens(Path(run.control)):
                runs[path] = run
    if not runs:
        owners = {_owner(path) for path in Path(tempfile.gettempdir()).glob(f"{RUN_FOLDER}*")}
        others = ", ".join(sorted(owners - {_owner(Path("/proc/self"))}))
        hint = f" ({others} runs one: repeat the command as that user)" if others else ""
        raise RunFileError(f"no network of yours is running{hint}; start one, or give --run FILE")
    return runs


def _time(path: Path) -> float:
    """When a file was written; 0 if it has been removed."""
    with contextlib.suppress(OSError):
        return path.lstat().st_mtime
    return 0.0


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):  # a user without a name, a folder that was removed just now
        return "another user"


def write(path: Path | None, content: RunFile) -> Path:
    """Writes a run file atomically, with the plug-ins of this process; returns its path. None: a path in
    `folder`, by target and process id.

    Raises:
        RunFileError: the file cannot be written.
    """
    place = path or folder() / f"{content.target}-{os.getpid()}.json"
    content = msgspec.structs.replace(content, plugins=plugins.loaded())
    try:
        if place.parent == folder():
            made_folder()
        temporary = place.with_name(f".{place.name}.{os.getpid()}")
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "w", encoding="utf-8") as file:
            file.write(msgspec.json.format(msgspec.json.encode(content), indent=1).decode())
        temporary.replace(place)
    except OSError as error:
        raise RunFileError(f"run file {place}: {error.strerror}") from None
    return place


def _check_folder(folder: Path) -> None:
    """Rejects a folder for temporary files that another user owns or may write to."""
    # lstat, as a symbolic link may lead to a folder of this user that others may write into
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise RunFileError(f"run file: {folder} is no folder")
    if status.st_uid != os.getuid():
        raise RunFileError(f"run file: {folder} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise RunFileError(f"run file: other users may write into {folder}; expected a folder of your own")


def remove(path: Path) -> None:
    """Removes a run file, if it is there."""
    with contextlib.suppress(OSError):
        path.unlink()


def read(path: Path | None = None) -> RunFile:
    """Reads a run file; None: that of the latest network.

    Raises:
        RunFileError: there is none, or its content is invalid; the message names the file and the key.
    """
    if path is None:
        return next(iter(running().values()))
    try:
        if not path.exists():
            raise RunFileError(f"no network is running (there is no {path}); start one, or give --run FILE")
        return read_json(path, RunFile, _MOST_BYTES)
    except OSError as error:
        raise RunFileError(f"run file {path}: {error.strerror}") from None
    except FileError as error:
        raise RunFileError(f"run file {error}") from None
