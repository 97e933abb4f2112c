# SPDX-License-Identifier: Apache-2.0
"""The cases of what Tailrace has written itself and reads again: results, kept runs, jobs, captures, plug-ins."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bad_input import broken
from tests.bad_input.broken import Broken
from tests.bad_input.case import ROOT, SMALLEST, Case, File

SUMMARY_KEYS: dict[str, tuple[tuple[Any, ...], str]] = {
    "format": (("format",), "number"),
    "scheme": (("scheme",), "text"),
    "seed": (("seed",), "number"),
    "flows": (("flows",), "number"),
    "packets": (("packets",), "table"),
    "faults": (("faults",), "list"),
}

LINKS = ("nowhere", "itself")
"""What leads to no file is as good as none."""


def of_result(folder: Path) -> Iterator[Case]:
    """A run's folder in which one file is broken."""
    good = {path.name: path.read_bytes() for path in folder.iterdir()}
    summary = json.loads(good["summary.json"])

    def case(name: str, damaged: Broken) -> Case:
        files: dict[str, File] = {f"R/{each}": content for each, content in good.items()}
        files[f"R/{name}"] = damaged.content
        return Case(f"{name}: {damaged.what}", ("tailrace", "report", "R"), (name,), files)

    # a seed may be below 0, and what names no scheme that is known here is a text all the same
    odd = ("seed is negative", "flows is negative", "faults is missing")
    of_summary = itertools.chain(
        broken.places(), broken.of_json_text(summary), broken.of_json(summary, SUMMARY_KEYS, missing=True)
    )
    for damaged in of_summary:
        if damaged.what not in (*odd, *LINKS, "an unknown key", "scheme is NUL"):
            yield case("summary.json", damaged)
    table = good["flows.parquet"]
    for damaged in itertools.chain(broken.places(), broken.flipped(table, 12), _headers(table)):
        yield case("flows.parquet", damaged)
    for name in ("gaps.parquet", "queues.parquet", "paths.parquet", "events.jsonl"):
        for damaged in broken.places(text=False):
            if damaged.what not in LINKS:  # there need be none
                yield case(name, damaged)
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
    kinds = (
        broken.places(),
        broken.of_json_text(document),
        broken.of_json(document, RESULTS_KEYS, missing=True),
    )
    for damaged in itertools.chain(*kinds):
        if damaged.what not in (*LINKS, "an unknown key"):
            yield Case(f"{name}: {damaged.what}", words, (".json",), {f"R/{name}": damaged.content})
    for what, folder, named in (
        ("elsewhere", "../../etc", "results.json: runs[0].folder"),
        ("absolute", "/etc", "results.json: runs[0].folder"),
        ("with a NUL", "a\0b", "results.json: runs[0].folder"),
        ("nothing", "nowhere", "summary.json"),
    ):
        files: dict[str, File] = {
            f"R/{name}": json.dumps(broken.set_at(json.loads(content), ("runs", 0, "folder"), folder))
        }
        yield Case(f"{name}: a folder {what}", words, (named,), files)
    for damaged in broken.places():
        if damaged.what not in LINKS:
            yield Case(
                f"result.json: {damaged.what}",
                ("tailrace", "report", "R"),
                ("result.json",),
                {"R/result.json": damaged.content},
            )


def of_store(line: str) -> Iterator[Case]:
    """Lines of finished runs."""
    record = json.loads(line)
    words = ("tailrace", "results", "--store", "S")
    keys: dict[str, tuple[tuple[Any, ...], str]] = {
        "run": (("run",), "text"),
        "words": (("words",), "table"),
        "ran": (("ran",), "list"),
        "summary": (("summary",), "table"),
        "metrics": (("metrics",), "table"),
    }
    for damaged in itertools.chain(broken.of_json(record, keys), broken.of_json_text(record)):
        assert isinstance(damaged.content, bytes)
        if damaged.what == "a BOM and nothing":  # a file without lines
            continue
        content = damaged.content.replace(b"\n", b" ")  # a line is a run
        yield Case(f"store: {damaged.what}", words, ("ecmp.jsonl", "line 1"), {"S/ecmp.jsonl": content})
    lines: dict[str, dict[str, File]] = {
        "another's file": {"S/flowcut.jsonl": line},
        "a line of 1 MiB": {"S/ecmp.jsonl": line + "\n" + "x" * (1 << 20)},
        "words changed": {"S/ecmp.jsonl": json.dumps(broken.set_at(record, ("words", "seed"), 99))},
        "another result": {
            "S/ecmp.jsonl": line
            + "\n"
            + json.dumps(broken.set_at(record, ("summary", "trace_sha256"), "0" * 64))
        },
    }
    for what, files in lines.items():
        yield Case(f"store: {what}", words, ("S/", ".jsonl", "line"), files)
    for damaged in broken.places(text=False):
        if damaged.what not in ("nowhere", "noise", "gzip"):  # the last two are several lines
            yield Case(f"store: {damaged.what}", words, ("S/ecmp.jsonl",), {"S/ecmp.jsonl": damaged.content})
    yield Case("store: a file", words, ("S",), {"S": b""})
    empty: dict[str, File] = {"S/ecmp.jsonl": b"{}\n"}
    yield Case(
        "store: a sweep into a broken one",
        (
            *("tailrace", "sweep", "--set", "scheme=ecmp", "--store", "S"),
            *SMALLEST,
        ),
        ("ecmp.jsonl", "line 1"),
        empty,
    )


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
    for damaged in itertools.chain(broken.places(), broken.of_json_text(JOB), broken.of_json(JOB, _JOB_KEYS)):
        yield Case(
            f"hosts: {damaged.what}", ("hosts", "FILE"), ("FILE", *damaged.says), {"FILE": damaged.content}
        )
    for damaged in itertools.chain(
        broken.places(), broken.of_json_text({"topology": 1, "scheme": {}, "target": "x"})
    ):
        yield Case(
            f"run_fabric: {damaged.what}", ("run_fabric", "FILE"), ("FILE",), {"FILE": damaged.content}
        )


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
    words = (
        "bench",
        "--program",
        "P.json",
        "--entries",
        "E",
        "--packets",
        "F",
        "--out",
        "../tmp/out",
        "--quick",
    )
    frames: bytes = good["F"]  # type: ignore[assignment]
    kinds: dict[str, Iterator[Broken]] = {
        "P.json": itertools.chain(broken.places()),
        "P.p4info.txtpb": itertools.chain(broken.places(text=False)),
        "E": itertools.chain(broken.places(text=False), iter([Broken("no updates", "updates { x: 1 }")])),
        "F": itertools.chain(broken.places(), broken.flipped(frames, 4), _captures(frames)),
    }
    for name, broken_files in kinds.items():
        for each in broken_files:
            if each.what != "doubled" and not (name == "E" and each.what == "empty"):
                yield Case(f"bench {name}: {each.what}", words, (name,), {**good, name: each.content})


def _captures(content: bytes) -> Iterator[Broken]:
    yield Broken("no frames", content[:24])
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
        "a NUL": "a = 1\0\n",
        "no UTF-8": b"a = '\xff'\n",
        "deep": "x = " + "(" * 10_000 + ")" * 10_000 + "\n",
        "a number of a million digits": "x = " + "9" * broken.DIGITS + "\n",
        "tabs": "if 1:\n\tx = 1\n        y = 2\n",
        "memory": "x = bytearray(1 << 40)\n",
    }
    for what, source in sources.items():
        yield Case(f"plug-in: {what}", words, ("D/p.py",), {"D/p.py": source})
    for damaged in broken.places(text=False):
        if damaged.what not in ("a folder", *LINKS):
            yield Case(f"plug-in: {damaged.what}", words, ("D/p.py",), {"D/p.py": damaged.content})
    yield Case("plug-in: an empty folder", words, ("plug-in /", "D: expected"), {"D": Path.mkdir})
    yield Case("plug-in: none", words, ("plug-in /", "D: expected"))
    yield Case(
        "plug-in: no Python file",
        ("tailrace", "schemes", "--plugin", "D/x.txt"),
        ("D/x.txt",),
        {"D/x.txt": ""},
    )
    many: dict[str, File] = {f"D/p{number}.py": "" for number in range(1100)}
    yield Case("plug-in: too many", words, ("plug-in /", "D: expected"), many)
