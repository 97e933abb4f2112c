# SPDX-License-Identifier: Apache-2.0
"""Objects of the cache: loaded only when they are whole and ours, built once, and nothing is left behind."""

from __future__ import annotations

import logging
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tailrace.cbuild import cache, confined
from tailrace.cbuild.cc import Recipe
from tailrace.cbuild.errors import BuildError
from tailrace.codec.build import codec_extension
from tests.processes import NOT_IGNORED

ROOT = Path(__file__).parents[2]
OTHER_USER = 12345
SOURCE = "int answer(void) { return 42; }\n"
# A process of its own that asks for the same object, and says so in its log when it made it.
ASK = """
import logging, sys
from pathlib import Path
logging.basicConfig(level=logging.DEBUG, format="%(message)s")
from tests.cbuild.test_cc import recipe
print(recipe(Path(sys.argv[1])).load().answer())
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


def recipe(folder: Path, source: str = SOURCE, name: str = "tiny") -> Recipe:
    return Recipe(name, [source], lambda: [source], (), cache_dir=folder)


def answer(folder: Path, source: str = SOURCE) -> int:
    return int(recipe(folder, source).load().answer())


def foreign(tmp_path: Path) -> bytes:
    """An object that is not of the cache, and that leaves a trace when it is loaded."""
    source, made = tmp_path / "evil.c", tmp_path / "evil.so"
    trace = tmp_path / "trace"
    source.write_text(
        f'#include <stdio.h>\n__attribute__((constructor)) static void e(void) {{ fopen("{trace}", "w"); }}\n'
        "int answer(void) { return 13; }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source], check=True)
    return made.read_bytes()


def put(path: Path, content: bytes) -> None:
    """Another file in its place: sanitized libraries are mapped from their files, which must not change."""
    path.unlink()
    path.write_bytes(content)


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def wait_for(condition: Callable[[], object], what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)


# ---- what is believed ----


def test_a_new_cache_is_ours_alone(tmp_path: Path) -> None:
    assert 42 == answer(tmp_path / "a" / "b")
    assert 0o700 == stat.S_IMODE((tmp_path / "a" / "b").stat().st_mode)
    assert [] == leftovers(tmp_path / "a" / "b")


def damages() -> list[tuple[str, Callable[[Path, bytes], object]]]:
    def link(path: Path, good: bytes) -> None:
        aside = path.with_name("aside")
        path.rename(aside)
        path.symlink_to(aside)

    def folder(path: Path, good: bytes) -> None:
        path.unlink()
        path.mkdir()
        (path / "x").write_bytes(good)

    def fifo(path: Path, good: bytes) -> None:
        path.unlink()
        os.mkfifo(path)

    return [
        ("empty", lambda p, good: p.write_bytes(b"")),
        ("one byte", lambda p, good: p.write_bytes(good[:1])),
        ("half", lambda p, good: p.write_bytes(good[: len(good) // 2])),
        ("one byte short", lambda p, good: p.write_bytes(good[:-1])),
        ("without its hash", lambda p, good: p.write_bytes(good[:-32])),
        ("one byte long", lambda p, good: p.write_bytes(good + b"\0")),
        ("a bit", lambda p, good: p.write_bytes(good[:5000] + bytes([good[5000] ^ 1]) + good[5001:])),
        ("zeros", lambda p, good: p.write_bytes(bytes(len(good)))),
        ("text", lambda p, good: p.write_text("not an object")),
        ("a link", link),
        ("a folder", folder),
        ("a fifo", fifo),
        ("others write", lambda p, good: p.chmod(0o666)),
    ]


@pytest.mark.parametrize("damage", [d for _, d in damages()], ids=[n for n, _ in damages()])
def test_what_is_damaged_is_made_again(tmp_path: Path, damage: Callable[[Path, bytes], object]) -> None:
    folder = tmp_path / "cache"
    path = recipe(folder).path()
    good = path.read_bytes()
    damage(path, good)
    assert 42 == answer(folder)
    assert path.is_file() and not path.is_symlink()
    assert [] == leftovers(folder)


def test_a_foreign_object_is_not_loaded(tmp_path: Path) -> None:
    """Neither a bare one nor one of the cache under another name."""
    folder = tmp_path / "cache"
    path = recipe(folder).path()
    put(path, foreign(tmp_path))
    assert 42 == answer(folder)
    other = recipe(folder, "int answer(void) { return 7; }\n").path()
    put(path, other.read_bytes())
    assert 42 == answer(folder)
    assert not (tmp_path / "trace").exists()


@pytest.mark.skipif(os.environ.get("ASAN") == "1", reason="sanitized libraries are mapped from their files")
def test_a_library_in_use_does_not_care_for_its_file(tmp_path: Path) -> None:
    """Cut short in place while it is loaded: it works on, and so does the next one; the process ends well."""
    program = (
        "import os, sys\nfrom pathlib import Path\nfrom tests.cbuild.test_cc import recipe\n"
        "made = recipe(Path(sys.argv[1]))\nlibrary = made.load()\n"
        "os.truncate(made.path(), 100)\nprint(library.answer(), made.load().answer())\n"
        "os.truncate(made.path(), 0)\nprint(library.answer())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (0, "42 42\n42\n") == (run.returncode, run.stdout), run.stderr


@needs_root
def test_another_users_folder_is_not_trusted(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    path = recipe(folder).path()
    os.chown(folder, OTHER_USER, -1)
    with pytest.raises(BuildError, match=r"is not trusted: it belongs to another user \(uid 12345\)"):
        answer(folder)
    os.chown(folder, 0, -1)
    os.chown(path, OTHER_USER, -1)
    assert 42 == answer(folder)
    assert 0 == path.stat().st_uid
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert 42 == answer(link)
    os.chown(link, OTHER_USER, -1, follow_symlinks=False)
    with pytest.raises(BuildError, match="a link of another user"):
        answer(link)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o1777])
def test_a_folder_that_others_write_is_not_trusted(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "cache"
    recipe(folder).path().write_bytes(foreign(tmp_path))
    folder.chmod(mode)
    with pytest.raises(BuildError, match="not trusted: others can write there"):
        answer(folder)
    assert not (tmp_path / "trace").exists()


def test_what_gets_lost_between_compiling_and_loading_is_made_again(tmp_path: Path) -> None:
    made = recipe(tmp_path)
    made.path().unlink()
    assert 42 == made.load().answer()


def test_what_the_machine_cannot_load_is_said(tmp_path: Path) -> None:
    broken = recipe(tmp_path, "extern int nowhere; int answer(void) { return nowhere; }\n")
    with pytest.raises(BuildError, match=r"cannot load .*nowhere"):
        broken.load()


# ---- one maker ----


def start(folder: Path, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*NOT_IGNORED, sys.executable, "-c", ASK, str(folder)],
        cwd=ROOT,
        env={**os.environ, **more},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_many_cold_starts_take_one_compile(tmp_path: Path) -> None:
    slow = script(tmp_path / "cc", '#!/bin/sh\nsleep 1\nexec cc "$@"\n')
    started = [start(tmp_path / "cache", CC=str(slow)) for _ in range(8)]
    said = [process.communicate(timeout=120) for process in started]
    assert ["42"] * 8 == [out.strip() for out, _ in said], said
    assert 1 == sum(err.count("made with") for _, err in said)
    assert [] == leftovers(tmp_path / "cache")


def compiling(tmp_path: Path) -> tuple[subprocess.Popen[str], Path, int]:
    """A process in the midst of compiling, its cache, and the number of what the compiler waits for."""
    folder = tmp_path / "cache"
    endless = script(tmp_path / "cc", '#!/bin/sh\nsleep 600 &\necho $! > "$TMPDIR/pid"\nwait\n')
    process = start(folder, CC=str(endless))
    pids: list[int] = []

    def known() -> bool:
        for path in folder.glob(".building-*/*/pid") if folder.exists() else ():
            if text := path.read_text().strip():
                pids.append(int(text))
        return bool(pids)

    wait_for(known, "no compiler was started")
    return process, folder, pids[0]


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_leaves_no_compiler(number: signal.Signals, tmp_path: Path) -> None:
    """And no lock: the next one compiles at once, and removes the scratch folder."""
    process, folder, pid = compiling(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert -number == process.returncode
    # it was killed with its group, and nobody waits for it but init
    wait_for(lambda: is_gone(pid), "the compiler runs on")
    script(tmp_path / "cc", '#!/bin/sh\nexec cc "$@"\n')
    out, err = start(folder, CC=str(tmp_path / "cc")).communicate(timeout=60)
    assert ("42", 1) == (out.strip(), err.count("made with"))
    assert [] == leftovers(folder)


def test_what_killed_processes_left_is_removed_by_the_next_builder(tmp_path: Path) -> None:
    dead, alive = f"tiny-{'0' * 32}-{'0' * 12}.so", f"tiny-{'1' * 32}-{'1' * 12}.so"
    opened = cache.open_folder(tmp_path / "cache")
    (opened.path / f".building-{dead}" / "scratch").mkdir(parents=True)
    (opened.path / f".building-{dead}" / "scratch" / "x.o").write_text("x")
    with opened.builder(alive) as scratch:
        (scratch / "x.o").write_text("x")
        assert opened.is_being_built("tiny") and not opened.is_being_built("tin")
        assert 42 == answer(opened.path)
        assert [f".building-{alive}"] == leftovers(opened.path)
        assert (scratch / "x.o").exists()
    assert [] == leftovers(opened.path)


def test_a_lock_is_not_waited_for_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "WAIT_S", 0.2)
    opened = cache.open_folder(tmp_path / "cache")
    with (
        opened.builder("x"),
        pytest.raises(BuildError, match="another process has been making x"),
        opened.builder("x"),
    ):
        raise AssertionError


def test_an_entry_is_no_link(tmp_path: Path) -> None:
    """A compiler that a hostile program has taken over cannot have a file of ours written."""
    opened, ours = cache.open_folder(tmp_path / "cache"), tmp_path / "ours"
    ours.write_text("ours")
    with opened.builder("x") as scratch, pytest.raises(BuildError, match="cannot write the cache"):
        (scratch / "made").symlink_to(ours)
        opened.put("x", scratch / "made")
    assert "ours" == ours.read_text()


# ---- where it lies ----


@pytest.mark.parametrize("options", ["size=64k", "size=300k", "size=2m,nr_inodes=2", "size=2m,nr_inodes=4"])
def test_a_full_disk_is_said_in_plain_words(options: str, tmp_path: Path) -> None:
    """On a small file system in a mount namespace of its own."""
    folder = tmp_path / "small"
    folder.mkdir()
    big = tmp_path / "big.py"
    big.write_text(
        "import sys\nfrom pathlib import Path\nfrom tests.cbuild.test_cc import recipe, BuildError\n"
        'source = "const char x[1 << 20] = {1}; int answer(void) { return x[0]; }"\n'
        "try:\n    recipe(Path(sys.argv[1]), source).load()\nexcept BuildError as e:\n    print(e)\n"
        "print([p.name for p in Path(sys.argv[1]).iterdir()])\n"
    )
    mount = f'mount -t tmpfs -o {options},mode=0700 none "$1" || exit 77; shift; exec "$@"'
    command = ["unshare", "-m", "sh", "-c", mount, "sh", str(folder), sys.executable, str(big), str(folder)]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode in (1, 77) and ("unshare" in run.stderr or "mount" in run.stderr):
        pytest.skip(f"no file system can be mounted here: {run.stderr.strip()}")
    assert [f"no space left in {folder}", "[]"] == run.stdout.splitlines(), run.stderr


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"TAILRACE_CACHE": "{tmp}/file"}, "cannot write the cache {tmp}/file: it is no folder"),
        ({"TAILRACE_CACHE": "{tmp}/file/below"}, "cannot write the cache {tmp}/file/below: it is no folder"),
        ({"TAILRACE_CACHE": "relative"}, "TAILRACE_CACHE is 'relative', expected an absolute path"),
        ({"TAILRACE_CACHE": "/proc/cache"}, "cannot write the cache /proc/cache: "),
        ({"TAILRACE_CACHE": "/" + "x" * 300}, "File name too long"),
        ({"HOME": "{tmp}/gone"}, "the home {tmp}/gone is no folder; set TAILRACE_CACHE"),
        ({"HOME": "{tmp}/file"}, "the home {tmp}/file is no folder; set TAILRACE_CACHE"),
        ({"XDG_CACHE_HOME": "{tmp}/file"}, "cannot write the cache {tmp}/file/tailrace: it is no folder"),
    ],
)
def test_a_place_that_is_none_is_named(
    variables: dict[str, str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for name in ("TAILRACE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("{tmp}", str(tmp_path)))
    with pytest.raises(BuildError) as caught:
        Recipe("tiny", [SOURCE], lambda: [SOURCE], ()).path()
    assert said.replace("{tmp}", str(tmp_path)) in str(caught.value)
    assert str(caught.value).isprintable()


def test_without_home_the_accounts_home_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it does where HOME is another user's, as under sudo -E."""

    def account(uid: int) -> object:
        raise KeyError(uid)

    for name in ("TAILRACE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    at_home = cache.root()
    assert at_home.is_absolute()
    if os.geteuid() == 0:
        os.chown(tmp_path, OTHER_USER, -1)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert at_home == cache.root()
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", account)
    with pytest.raises(BuildError, match="HOME is not set; set TAILRACE_CACHE"):
        cache.root()


def test_what_is_unused_or_too_much_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first; what is no entry is somebody's own and stays."""
    texts = [SOURCE + "\n" * i for i in range(4)]
    paths = [recipe(tmp_path, text).path() for text in texts[:3]]
    (tmp_path / "thesis.so").write_bytes(bytes(9_000_000))
    for age, path in enumerate(reversed(paths)):
        os.utime(path, (time.time() - 3600 * (age + 1),) * 2)
    monkeypatch.setattr(cache, "MOST_BYTES", 2 * paths[0].stat().st_size)
    last = recipe(tmp_path, texts[3]).path()
    assert {last.name, paths[2].name, paths[1].name, "thesis.so"} == {
        path.name for path in tmp_path.iterdir()
    }
    os.utime(paths[2], (time.time() - 90 * 86400,) * 2)
    paths[0] = recipe(tmp_path, texts[0]).path()
    assert not paths[2].exists()


def test_what_is_used_stays(tmp_path: Path) -> None:
    """An object that is loaded counts as used, once a day."""
    path = recipe(tmp_path).path()
    os.utime(path, (time.time() - 59 * 86400,) * 2)
    answer(tmp_path)
    assert time.time() - path.stat().st_mtime < 3600
    before = path.stat().st_mtime_ns
    answer(tmp_path)
    assert before == path.stat().st_mtime_ns


def test_the_confinement_is_that_of_every_compile(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        recipe(tmp_path).path()
    (line,) = [line for line in caplog.messages if "made with" in line]
    assert line.endswith("confined by: " + ", ".join(active(tmp_path)))


def active(tmp_path: Path) -> tuple[str, ...]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return confined.run(["/bin/true"], scratch, confined.readable(Path("/bin/true"))).active


def test_an_extension_names_no_file() -> None:
    """It is loaded from a descriptor that is closed afterwards; hypothesis, which reads the files of modules, has
    blocked for ever on a pipe that had got the same number.
    """
    module = codec_extension()
    assert not hasattr(module, "__file__")
    assert module.__spec__ is not None and module.__spec__.origin is None
