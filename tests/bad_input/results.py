# SPDX-License-Identifier: Apache-2.0
"""The cases of what Tailrace has written itself and reads again: results, kept runs, jobs, captures, plug-ins."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from arro3.io import read_parquet as read_arrow

from tailrace.results.parquet import parquet_bytes
from tailrace.tables.arrow import make_table, values_of
from tests.bad_input import broken
from tests.bad_input.broken import Broken
from tests.bad_input.case import ROOT, SMALLEST, Case, File
from tests.bad_input.files import cases

SUMMARY_KEYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "format": (("format",), "number"),
    "scheme": (("scheme",), "text"),
    "flows": (("flows",), "number"),
    "packets": (("packets",), "table"),
    "faults": (("faults",), "list"),
}


GOOD = ("flows is negative", "faults is missing", "an unknown key", "scheme is NUL")
"""Changes of a summary that its reader accepts."""

JSON_COLUMNS = ("specs", "ran", "summary", "unmeasured")
"""Columns of stored runs that contain JSON."""


def of_result(folder: Path) -> Iterator[Case]:
    """A run's folder in which one file is broken."""
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    summary = json.loads(good["summary.json"])

    def case(name: str, damaged: Broken) -> Case:
        files: dict[str, File] = {f"R/{each}": content for each, content in good.items()}
        files[f"R/{name}"] = damaged.content
        return Case(f"{name}: {damaged.what}", ("tailrace", "report", "R"), (name,), files)

    for damaged in [broken.A_PIPE, *broken.of_json_text(summary), *broken.of_json(summary, SUMMARY_KEYS)]:
        if damaged.what not in GOOD:
            yield case("summary.json", damaged)
    table = good["flows.parquet"]
    for damaged in [*broken.places(), *broken.flipped(table, 6), *_headers(table)]:
        yield case("flows.parquet", damaged)
    for name in ("gaps.parquet", "queues.parquet", "paths.parquet", "events.jsonl"):
        yield case(name, broken.A_PIPE)
    yield Case("a folder without results", ("tailrace", "report", "R"), ("R", "no results"), {"R/x": b""})
    yield Case("no folder", ("tailrace", "report", "R"), ("R", "not a folder"))
    yield Case("a file for a folder", ("tailrace", "report", "R"), ("R", "not a folder"), {"R": b""})


def _headers(content: bytes) -> Iterator[Broken]:
    """Parquet whose end says something else than what is there."""
    yield Broken("a footer of 4 GiB", content[:-8] + b"\xff\xff\xff\xffPAR1")
    yield Broken("a footer of nothing", content[:-8] + bytes(4) + b"PAR1")
    yield Broken("only its marks", b"PAR1PAR1")
    yield Broken("another mark", content[:-4] + b"PARE")
    yield Broken("CSV", b"id,src\n1,h1\n")


RESULTS_KEYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "axes": (("axes",), "table"),
    "runs": (("runs",), "list"),
    "runs[0].settings": (("runs", 0, "settings"), "table"),
    "runs[0].folder": (("runs", 0, "folder"), "text"),
}


def of_documents(content: bytes) -> Iterator[Case]:
    """results.json of a sweep, and result.json of a figure."""
    words, name, document = ("tailrace", "report", "R"), "results.json", json.loads(content)
    for damaged in [
        broken.A_PIPE,
        *broken.of_json_text(document),
        *broken.of_json(document, RESULTS_KEYS),
    ]:
        if damaged.what != "an unknown key":
            yield Case(f"{name}: {damaged.what}", words, (".json",), {f"R/{name}": damaged.content})
    for folder, named in (
        ("../../etc", "results.json: runs[0].folder"),
        ("/etc", "results.json: runs[0].folder"),
        ("a\0b", "results.json: runs[0].folder"),
        ("nowhere", "summary.json"),
    ):
        elsewhere = json.dumps(broken.set_at(document, ("runs", 0, "folder"), folder))
        yield Case(f"{name}: a folder {folder!a}", words, (named,), {f"R/{name}": elsewhere})
    yield Case("result.json: a pipe", words, ("result.json",), {"R/result.json": broken.A_PIPE.content})


def of_store(path: Path) -> Iterator[Case]:
    """Files of finished runs, made of one run of such a file."""
    table = read_arrow(io.BytesIO(path.read_bytes())).read_all()
    kinds = dict(zip(table.column_names, table.schema.types, strict=True))
    first = {name: values[:1] for name, values in values_of(table).items()}

    def content(**changes: list[Any]) -> bytes:
        return parquet_bytes(make_table(first | changes, kinds))

    def changed(column: str, key: str, value: object) -> str:
        return json.dumps(json.loads(first[column][0]) | {key: value})

    words = ("tailrace", "results", "--store", "S")
    good = content()
    for damaged in [broken.A_PIPE, *broken.flipped(good, 3), *_headers(good)]:
        yield Case(
            f"store: {damaged.what}", words, ("S/mp-rdma.parquet",), {"S/mp-rdma.parquet": damaged.content}
        )
    summary = json.loads(first["summary"][0])
    texts = [
        *((name, each) for name in JSON_COLUMNS for each in broken.of_json_text(json.loads(first[name][0]))),
        *(("summary", each) for each in broken.of_json(summary, SUMMARY_KEYS) if each.what not in GOOD),
    ]
    for name, damaged in texts:
        assert isinstance(damaged.content, bytes)
        files: dict[str, File] = {
            "S/mp-rdma.parquet": content(**{name: [damaged.content.decode(errors="replace")]})
        }
        yield Case(f"store: {name}: {damaged.what}", words, ("S/mp-rdma.parquet",), files)
    twice = {name: values * 2 for name, values in first.items()}
    other = changed("summary", "trace_sha256", "0" * 64)
    cells: dict[str, dict[str, File]] = {
        "another's file": {"S/flowcut.parquet": good},
        "a row of 1 MiB": {"S/mp-rdma.parquet": content(files=["x" * (1 << 20)])},
        "specs changed": {"S/mp-rdma.parquet": content(specs=[changed("specs", "seed", 99)])},
        "another result": {
            "S/mp-rdma.parquet": parquet_bytes(
                make_table(twice | {"summary": [first["summary"][0], other]}, kinds)
            )
        },
    }
    for what, files in cells.items():
        yield Case(f"store: {what}", words, ("S/", ".parquet", "row"), files)
    yield Case("store: a file", words, ("S",), {"S": b""})
    sweep = ("tailrace", "sweep", "--set", "scheme=mp-rdma", "--store", "S", *SMALLEST)
    empty: dict[str, File] = {"S/mp-rdma.parquet": content(run=["x"])}
    yield Case("store: a sweep into a broken one", sweep, ("mp-rdma.parquet", "row 1"), empty)


JOB: dict[str, Any] = {
    "hosts": [
        {
            "name": "h1",
            "interface": "none-there",
            "ip": "10.0.1.2",
            "mac": "02:00:00:00:00:01",
            "gateway_mac": "02:00:00:00:00:02",
            "rate_bps": 1_000_000,
        }
    ],
    "flows": [],
    "nic": {},
    "wait_for_start": False,
}
_JOB_KEYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "hosts": (("hosts",), "list"),
    "hosts[0].ip": (("hosts", 0, "ip"), "text"),
    "hosts[0].mac": (("hosts", 0, "mac"), "text"),
    "hosts[0].rate_bps": (("hosts", 0, "rate_bps"), "number"),
    "flows": (("flows",), "list"),
    "nic": (("nic",), "table"),
}


def of_jobs() -> Iterator[Case]:
    """What the hosts' driver and the Mininet harness are given by whoever starts them."""
    broken_jobs = [broken.A_PIPE, *broken.of_json_text(JOB), *broken.of_json(JOB, _JOB_KEYS)]
    yield from cases("hosts", ("hosts", "FILE"), broken_jobs)
    fabric = {"topology": 1, "scheme": {}, "target": "x"}
    yield from cases("run_fabric", ("run_fabric", "FILE"), [broken.A_PIPE, *broken.of_json_text(fabric)])


_PCAP = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")


def of_bench() -> Iterator[Case]:
    """A program of one's own, its entries and frames."""
    build = ROOT / "p4src" / "build"
    good: dict[str, File] = {
        "P.json": (build / "ecmp.json").read_bytes(),
        "P.p4info.txtpb": (build / "ecmp.p4info.txtpb").read_bytes(),
        "E": b"",
        "F": _PCAP + bytes(8) + 2 * (64).to_bytes(4, "little") + bytes(64),
    }
    program = ("bench", "--program", "P.json", "--entries", "E", "--packets", "F")
    words = (*program, "--out", "../tmp/out", "--quick")
    frames: bytes = good["F"]  # type: ignore[assignment]
    kinds: dict[str, list[Broken]] = {
        "P.json": [broken.A_PIPE],
        "P.p4info.txtpb": [broken.A_PIPE],
        "E": [broken.A_PIPE, Broken("no updates", "updates { x: 1 }")],
        "F": [broken.A_PIPE, *_captures(frames)],
    }
    for name, broken_files in kinds.items():
        for each in broken_files:
            yield Case(f"bench {name}: {each.what}", words, (name,), {**good, name: each.content})


def _captures(content: bytes) -> Iterator[Broken]:
    yield Broken("empty", b"")
    yield Broken("no frames", content[:24])
    yield Broken("cut in a frame", content[:-1])
    yield Broken(
        "a frame of 4 GiB", content[:24] + bytes(8) + b"\xff\xff\xff\xff\xff\xff\xff\xff" + bytes(64)
    )
    yield Broken("a frame of nothing", content[:24] + bytes(16))


def of_plugins() -> Iterator[Case]:
    """Files of Python from outside."""
    words = ("tailrace", "schemes", "--plugin", "D")
    sources: dict[str, File] = {
        "no Python": "this is not Python\n",
        "an exception": "raise RuntimeError('x\\ny\\x1b[31m')\n",
        "an exit": "import sys\nsys.exit(3)\n",
        "an import that fails": "import nothing_of_that_name\n",
        "no end of calls": "def f():\n    f()\n\nf()\n",
        "no UTF-8": b"a = '\xff'\n",
        "deep": "x = " + "(" * 10_000 + ")" * 10_000 + "\n",
        "a number of a million digits": "x = " + "9" * broken.DIGITS + "\n",
        "memory": "x = bytearray(1 << 40)\n",
    }
    for what, source in sources.items():
        yield Case(f"plug-in: {what}", words, ("D/p.py",), {"D/p.py": source})
    yield Case("plug-in: a pipe", words, ("D/p.py",), {"D/p.py": broken.A_PIPE.content})
    yield Case("plug-in: an empty folder", words, ("plug-in /", "D: expected"), {"D": Path.mkdir})
    yield Case("plug-in: none", words, ("plug-in /", "D: expected"))
    text_file = ("tailrace", "schemes", "--plugin", "D/x.txt")
    yield Case("plug-in: no Python file", text_file, ("D/x.txt",), {"D/x.txt": ""})
    many: dict[str, File] = {f"D/p{number}.py": "" for number in range(1100)}
    yield Case("plug-in: too many", words, ("plug-in /", "D: expected"), many)
