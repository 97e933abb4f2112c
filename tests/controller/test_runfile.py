# SPDX-License-Identifier: Apache-2.0
"""Run files: written whole, read back, and what is wrong in one is named."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from tailrace.controller import runfile
from tailrace.controller.runfile import RunFile, RunFileError, RunSwitch
from tailrace.p4rt.errors import TlsError
from tailrace.p4rt.tls import Tls
from tailrace.schemes.registry import resolved_of
from tailrace.spec import SpecError, plugins
from tests.controller.live import live

RUN = RunFile(
    topology="leaf-spine:leaves=2",
    scheme="flowcut",
    target="native",
    tick_ns=1000,
    relay=None,
    switches={"leaf1": RunSwitch("unix:/tmp/x/leaf1.sock", 1, "flowcut")},
    time_scale=2500.0,
    down=(("leaf1", 3),),
    suppressed=(("leaf1", 4, 1_500_000),),
)


def test_round_trip(tmp_path: Path) -> None:
    """What is written is read; the file is the user's alone and nothing else is left in its folder."""
    place = tmp_path / "run.json"
    assert place == runfile.write(place, RUN)
    assert RUN == runfile.read(place)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert [place] == list(tmp_path.iterdir())
    runfile.remove(place)
    runfile.remove(place)
    assert [] == list(tmp_path.iterdir())


def test_plug_ins_are_named_where_they_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has them loaded writes which; an error where one is missing says so, and no other error does."""
    monkeypatch.setattr(plugins, "loaded", lambda: ("/x/bend.py", "a-package"))
    run = runfile.read(runfile.write(tmp_path / "run.json", RUN))
    assert run.plugins == ("/x/bend.py", "a-package")
    document = {"kind": "ResolvedBend"}
    with pytest.raises(SpecError, match=r"kind 'ResolvedBend' is not known$"), plugins.expected(run.plugins):
        resolved_of(document)
    monkeypatch.setattr(plugins, "loaded", lambda: ("a-package",))
    expected = r"is not known; the network has plug-ins .* \(TAILRACE_PLUGINS\): /x/bend\.py$"
    with pytest.raises(SpecError, match=expected), plugins.expected(run.plugins):
        resolved_of(document)


def test_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default place is a folder of the user's alone, in the runtime folder or that for temporary files."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert tmp_path / "tailrace" / f"native-{os.getpid()}.json" == runfile.write(None, RUN)
    assert RUN == runfile.read()
    assert stat.S_IMODE((tmp_path / "tailrace").stat().st_mode) == 0o700
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert runfile.folder().parent == tmp_path
    assert RUN == runfile.read(runfile.write(None, RUN))


def test_no_network(tmp_path: Path) -> None:
    """Without a run file no network is running, and the line says what to do."""
    with pytest.raises(RunFileError, match=r"no network is running .*; start one, or give --run FILE"):
        runfile.read(tmp_path / "none.json")
    with pytest.raises(RunFileError, match=r"run file .*: Is a directory"):
        runfile.read(tmp_path)
    with pytest.raises(RunFileError, match=r"run file .*: No such file"):
        runfile.write(tmp_path / "none" / "run.json", RUN)


def test_several_networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The latest comes first, and is the default; those whose process was killed are left out."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        socket = Path(folder) / "s"
        runs = {
            "old": RUN,
            "new": structs.replace(RUN, topology="fat-tree", control=str(socket)),
            "killed": structs.replace(RUN, control=str(Path(folder) / "nobody")),
        }
        for number, (name, run) in enumerate(runs.items()):
            path = runfile.write(tmp_path / "tailrace" / f"{name}.json", run)
            os.utime(path, (number, number))
        with live(socket, "leaf-spine"):
            assert {path.stem: run for path, run in runfile.running().items()} == {
                "new": runs["new"],
                "old": RUN,
            }
            assert next(iter(runfile.running())).stem == "new" and runfile.read() == runs["new"]
        assert runfile.read() == RUN
    runfile.remove(tmp_path / "tailrace" / "old.json")
    with pytest.raises(
        RunFileError, match=r"^no network of yours is running; start one, or give --run FILE$"
    ):
        runfile.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_networks_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder shows who the owner of a run in Mininet is; another user cannot read the run file."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "mine"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run_folder = tmp_path / f"{runfile.RUN_FOLDER}x"
    run_folder.mkdir()
    with pytest.raises(RunFileError, match=r"^no network of yours is running; start one"):
        runfile.read()
    os.chown(run_folder, 65534, 65534)
    with pytest.raises(RunFileError) as caught:
        runfile.read()
    assert "is running (nobody runs one: repeat the command as that user); start one" in str(caught.value)


GOOD: dict[str, Any] = {
    "topology": "t",
    "scheme": "s",
    "target": "native",
    "tick_ns": 1,
    "relay": "x",
    "switches": {"a": {"address": "127.0.0.1:9559", "device_id": 1, "program": "ecmp"}},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"relay": 1}, "relay: expected a path or null"),
        ({"switches": {"a": 1}}, "switches.a: expected a table"),
        ({"switches": {"a": {"address": 1}}}, "switches.a.address: expected a string"),
        ({"switches": {"\x1b[31m": GOOD["switches"]["a"]}}, "switches"),
        ({"suppressed": [["leaf1", 3]]}, "suppressed[0]: expected a switch, a port and a time"),
        ({"suppressed": [["leaf1", 3, "1ms"]]}, "suppressed[0][2]: expected a whole number"),
        ({"time_scale": 0}, "time_scale: expected a number above 0"),
        ({"time_scale": "1"}, "time_scale: expected a number"),
        ({"time_scale": 10**400}, "time_scale"),
        ({"relay": "\ud800"}, "relay"),
    ],
)
def test_bad_content_is_refused_with_file_and_key(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    """tests/bad_input has those of other keys."""
    place = tmp_path / "run.json"
    place.write_text(json.dumps(GOOD | change))
    with pytest.raises(RunFileError) as caught:
        runfile.read(place)
    assert f"run file {place}: " in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_optional_scale(tmp_path: Path) -> None:
    """A run file without a time scale is of a network at its own speed."""
    place = tmp_path / "run.json"
    place.write_text(json.dumps(GOOD))
    assert runfile.read(place).time_scale == 1.0


def test_tls_files(tmp_path: Path) -> None:
    """TLS files that are missing, are no PEM, or come without their partner are refused in one line."""
    good, bad = tmp_path / "good.pem", tmp_path / "bad.pem"
    good.write_text("-----BEGIN CERTIFICATE-----\n")
    bad.write_text("x")
    for tls, message in (
        (Tls(ca=tmp_path / "none.pem"), "none.pem: No such file"),
        (Tls(ca=bad), "bad.pem: not a PEM file"),
        (Tls(ca=good, cert=good), "only one of them is given"),
    ):
        with pytest.raises(TlsError, match=message):
            tls.credentials()
    assert Tls(ca=good).credentials().cacert == good.read_bytes()


def test_default_folder_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder where all may write a link or an open folder would let others say where the network is."""
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = runfile.folder()
    runfile.write(None, RUN)
    folder.chmod(0o777)
    for use in (runfile.read, lambda: runfile.write(None, RUN)):
        with pytest.raises(
            RunFileError, match=r"other users may write into .*; expected a folder of your own"
        ):
            use()
    folder.chmod(0o700)
    assert RUN == runfile.read()
    folder.rename(tmp_path / "real")
    folder.symlink_to(tmp_path / "real")
    for use in (runfile.read, lambda: runfile.write(None, RUN)):
        with pytest.raises(RunFileError, match=r"run file: .* is no folder"):
            use()
