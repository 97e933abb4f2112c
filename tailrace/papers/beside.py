# SPDX-License-Identifier: Apache-2.0
"""A figure beside a peer: another program that ran the same flows, with its numbers next to ours.

FOLDER/CLONE/                        the peer's repository, built by the user, with the inputs of both
FOLDER/NAME/CASE-SCHEME-SEED.out     what the peer printed, by the commands that `commands` returns

Without the folder the figure shows its stored document. The peer's seeds and ours draw different random
numbers for the same flows: they are independent samples, not pairs.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

import msgspec
from msgspec.structs import replace

from tailrace.experiments.plan.axes import CASE, SCHEME
from tailrace.experiments.plan.experiment import Settings
from tailrace.experiments.plan.seeds import seeds_text
from tailrace.papers.document import Cell, Document, read_document
from tailrace.papers.model import Beside, Case, PaperFile, names, paper_of, read_paper
from tailrace.papers.outputs import Output, PeerFlow, metrics_of, read_output
from tailrace.results.estimates import independent_ratio, seed_values
from tailrace.results.metrics import measure
from tailrace.results.result import Result
from tailrace.results.results import Results
from tailrace.spec.errors import FileError, SpecError
from tailrace.spec.schema import given
from tailrace.spec.units import significant

THEIRS = "theirs"
EVEN = (0.9, 1.1)
"""Ratios outside this range need a cause."""

Key = tuple[str, str]
"""A case and a scheme."""


def commands(name: str, file: PaperFile, peer: Beside, scale: str) -> dict[Key, tuple[str, str]]:
    """By case and scheme, our spec, and the line of bash that makes the peer's outputs in FOLDER."""
    lines, seeds = {}, " ".join(map(str, peer.seeds))
    for case, scheme in itertools.product(file.cases(scale) or [Case("")], file.scheme):
        key = case.name, scheme.label
        ours = given(scheme.experiment) | given(scheme.cases.get(case.name, Settings()))
        call = " ".join(filter(None, (peer.command, case.theirs, scheme.theirs)))
        output = f"{name}/{_output(key, '$seed')}"
        lines[key] = ours["scheme"], f"for seed in {seeds}; do (time -p {call}) > {output} 2>&1; done"
    return lines


def script(name: str, scale: str) -> str:
    """The lines of bash that build the peer and make its outputs in an empty folder; empty without a peer."""
    file = read_paper(name) if name in names() else None
    if file is None or (peer := file.beside) is None:
        return ""
    lines = [f"git clone {peer.clone} && git -C {_clone_of(peer)} checkout {peer.commit}", peer.build]
    for spec, command in commands(name, file, peer, scale).values():
        lines += [f"# here {spec}", command]
    return "\n".join((*lines, f"tailrace paper {name} --scale {scale} --beside .\n"))


def _output(key: Key, seed: int | str) -> str:
    return re.sub(r"[^\w.-]+", "-", _title(key)) + f"-{seed}.out"


def _title(key: Key) -> str:
    return " ".join(filter(None, key))


def _clone_of(peer: Beside) -> str:
    """The name that `git clone` gives to the peer's folder."""
    return peer.clone.rpartition("/")[2]


def has_clone(peer: Beside, folder: Path | None) -> bool:
    """Whether the folder of all peers has this peer."""
    return folder is not None and (folder / _clone_of(peer)).is_dir()


def in_folder(file: PaperFile, folder: Path | None) -> PaperFile:
    """The file with the folder of all peers in place of `FOLDER`."""
    text = msgspec.json.encode(file).decode()
    path = msgspec.json.encode(str(folder)).decode().strip('"')
    return msgspec.json.decode(text.replace("FOLDER/", f"{path}/") if folder else text, type=PaperFile)


def read_theirs(
    name: str, file: PaperFile, peer: Beside, scale: str, folder: Path
) -> dict[Key, list[Output]]:
    """Reads all outputs of the peer, by case and scheme, one for each seed.

    Raises:
        FileError: an output is missing or broken; the message has the command for a missing one.
    """
    outputs = dict[Key, list[Output]]()
    for key, (_, command) in commands(name, file, peer, scale).items():
        for seed in peer.seeds:
            path = folder / name / _output(key, seed)
            if not path.exists():
                raise FileError(path, "", f"missing; expected the output of: {command}")
            outputs.setdefault(key, []).append(read_output(path, peer.format, peer.ack_ns))
    return outputs


def put_beside(
    document: Document, results: Results, peer: Beside, theirs: Mapping[Key, Sequence[Output]]
) -> Document:
    """The document of our results with the peer's numbers, and with our ratios to them.

    Raises:
        SpecError: a run of the peer finished another number of flows than ours has.
    """
    cells, cases = [], dict[str, str]()
    for cell in document.cells:
        key = cell.case, cell.label
        of_cell = [run.result for run in results.runs if (run.settings[CASE], run.settings[SCHEME]) == key]
        runs = [run for run in of_cell if run is not None]
        _check_flows(key, runs, theirs[key])
        for title, ours, peers in _ranges(runs, theirs[key], peer.ends):
            case = ", ".join(filter(None, (cell.case, title)))
            if case:
                cases[case] = ", ".join(filter(None, (document.cases.get(cell.case, cell.case), title)))
            cells.append(_cell(replace(cell, case=case), document.metrics, peer, ours, peers))
    notes = (*document.notes, *_notes(document, peer, [run for each in theirs.values() for run in each]))
    return replace(document, base=THEIRS, cells=tuple(cells), cases=cases, notes=notes)


_Measures = list[dict[str, float]]
"""The metrics of each seed."""


def _ranges(
    runs: Sequence[Result], outputs: Sequence[Output], ends: Sequence[int]
) -> Iterator[tuple[str, _Measures, _Measures]]:
    """For all flows, and for each range of sizes that has flows: its title, our metrics and the peer's."""
    yield "all sizes" * bool(ends), [measure(run) for run in runs], [metrics_of(run.flows) for run in outputs]
    flows = [tuple(PeerFlow(row.fct_ns or 0, row.bytes) for row in run.rows) for run in runs]
    for least, most in itertools.pairwise((0, *ends, math.inf) if ends else ()):
        title = f"{least + 1:,} to {most:,} B" if most < math.inf else f"above {least:,} B"
        ours = [_between(each, least, most) for each in flows]
        theirs = [_between(each.flows, least, most) for each in outputs]
        if all(ours) and all(theirs):
            yield title, [metrics_of(each) for each in ours], [metrics_of(each) for each in theirs]


def _between(flows: Sequence[PeerFlow], least: float, most: float) -> list[PeerFlow]:
    return [flow for flow in flows if least < flow.size_bytes <= most]


def _cell(
    cell: Cell, metrics: Sequence[str], peer: Beside, ours_by_seed: _Measures, theirs_by_seed: _Measures
) -> Cell:
    """The cell with our metrics, the peer's, and the ratios."""
    title = _title((cell.case, cell.label))
    ours, peers = seed_values(ours_by_seed), seed_values(theirs_by_seed)
    both = [name for name in metrics if name in ours and name in peers]
    ratios = {name: each.numbers for name in both if (each := independent_ratio(ours[name], peers[name]))}
    far = any(not EVEN[0] <= ratio <= EVEN[1] for ratio, *_ in ratios.values())
    cause = next((f"{each}: {peer.causes[each]}" for each in (title, cell.label) if each in peer.causes), "")
    return replace(
        cell,
        metrics={name: ours[name].value for name in both},
        intervals={name: ends for name in both if (ends := ours[name].estimate().ends)},
        ratios=ratios,
        theirs={name: peers[name].estimate().numbers for name in both},
        note=(cause or f"{title}: unexplained.") * far,
        runs=(),  # pages name runs by their options, and those of these runs have paths of this machine
    )


def _check_flows(key: Key, ours: Sequence[Result], theirs: Sequence[Output]) -> None:
    flows = {count for run in ours for count in (run.summary.flows, run.summary.completed)}
    finished = {len(run.flows) for run in theirs}
    if ours and finished != flows:
        raise SpecError(f"{_output(key, 'SEED')}: expected {flows} finished flows, found {finished}")


def _notes(document: Document, peer: Beside, outputs: Sequence[Output]) -> Iterator[str]:
    """Remarks on the numbers of both."""
    date = datetime.fromtimestamp(max(run.modified_s for run in outputs), timezone.utc).date()
    cpu_s = [run.cpu_s for run in outputs if run.cpu_s is not None]
    theirs = f"{significant(sum(cpu_s) / len(cpu_s), 2)} s there" if cpu_s else "unknown there"
    cost = document.cost
    ours = f"{significant(cost.cpu_s / cost.runs, 2)} s here" if cost else "unknown here"
    yield f"Theirs: {peer.peer}, commit {peer.commit}, runs of {date}, seeds {seeds_text(peer.seeds)}."
    yield f"CPU time of a run, set-up included: {theirs}, {ours}."
    if peer.ack_ns:
        yield f"Of their FCTs the time of the last ACK without load is taken off, {peer.ack_ns / 1000:g} µs."
    yield "Both draw their own random numbers: independent samples (Welch), not pairs."


def recorded(name: str, folder: Path | None) -> Document | None:
    """The stored document of a figure in a folder of pages; None if it is not there.

    Raises:
        FileError: it cannot be read.
    """
    path = folder / paper_of(name) / f"{name}.json" if folder is not None else None
    return read_document(path) if path is not None and path.exists() else None
