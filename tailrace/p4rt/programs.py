# SPDX-License-Identifier: Apache-2.0
"""Compiled P4 programs: P4Info, BMv2 JSON, and constants of the P4 source."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from google.protobuf import text_format
from google.protobuf.message import DecodeError

from tailrace.cbuild.artifacts import P4_BUILD
from tailrace.cbuild.memoized import memoized
from tailrace.p4rt.errors import P4ProgramError
from tailrace.p4rt.messages import p4i
from tailrace.spec import plugins
from tailrace.spec.files import MOST_TEXT_BYTES, read_bytes, without_bom
from tailrace.spec.text import one_line

_P4INFO = (".p4info.txtpb", ".p4.p4info.txtpb", ".p4info.txt", ".p4.p4info.txt")
"""Endings of P4Info files next to NAME.json: this project's, p4lang's tutorials', and p4c's before 2024."""
_CACHED = 256
JSON = ".json"
_INFO = ":"
"""Separates the two paths of `reference`; paths in specs do not contain it."""


@dataclass(frozen=True, slots=True, eq=False)
class P4Program:
    """A compiled program.

    name: the program's name; path: its BMv2 JSON file
    json: the content of the BMv2 JSON file
    sha256, cookie: identify the content of both files
    """

    name: str
    path: Path
    p4info: p4i.P4Info
    json: bytes
    sha256: str
    cookie: int

    def enum(self, type_name: str, member: str) -> int:
        """The value of a member of an enum of the P4 source.

        Raises:
            P4ProgramError: the program has no such member.
        """
        for candidate in self.p4info.type_info.serializable_enums[type_name].members:
            if candidate.name == member:
                return int.from_bytes(candidate.value, "big")
        raise P4ProgramError(f"program {self.name}: P4Info has no {type_name}.{member}")

    def enum_name(self, type_name: str, value: int) -> str:
        """The name of an enum's value; the value as text if the enum has no such value."""
        for member in self.p4info.type_info.serializable_enums[type_name].members:
            if int.from_bytes(member.value, "big") == value:
                return member.name
        return str(value)

    def constant(self, key: str) -> int:
        """A constant of the annotation `@switch[...]` of the P4 source's main, such as `cpu_port`.

        Raises:
            P4ProgramError: there is no such constant.
        """
        for annotation in self.p4info.pkg_info.structured_annotations:
            if annotation.name == "switch":
                for pair in annotation.kv_pair_list.kv_pairs:
                    if pair.key == key:
                        return pair.value.int64_value
        raise P4ProgramError(f"program {self.name}: P4Info has no annotation @switch[{key}]")

    def table(self, alias: str) -> p4i.Table:
        """The P4Info of a table.

        Raises:
            P4ProgramError: there is no such table.
        """
        for table in self.p4info.tables:
            if table.preamble.alias == alias:
                return table
        raise P4ProgramError(f"program {self.name}: P4Info has no table {alias}")

    def has_table(self, alias: str) -> bool:
        return any(table.preamble.alias == alias for table in self.p4info.tables)

    def largest(self, action: str, param: str) -> int:
        """The largest value that fits a parameter of an action.

        Raises:
            P4ProgramError: there is no such parameter.
        """
        for declared in self.p4info.actions:
            if declared.preamble.alias == action:
                for candidate in declared.params:
                    if candidate.name == param:
                        return (1 << candidate.bitwidth) - 1
        raise P4ProgramError(f"program {self.name}: P4Info has no parameter {action}.{param}")

    def register_size(self, alias: str) -> int:
        """The number of cells of a register.

        Raises:
            P4ProgramError: there is no such register.
        """
        for register in self.p4info.registers:
            if register.preamble.alias == alias:
                return register.size
        raise P4ProgramError(f"program {self.name}: P4Info has no register {alias}")

    def register_bits(self) -> dict[str, tuple[int, int]]:
        """For each register, the number of cells and the width of a cell in bits.

        Raises:
            P4ProgramError: a register has structs.
        """
        enums = self.p4info.type_info.serializable_enums
        registers = {}
        for register in self.p4info.registers:
            spec = register.type_spec
            if spec.HasField("serializable_enum"):
                bits = enums[spec.serializable_enum.name].underlying_type.bitwidth
            elif spec.HasField("bitstring"):
                bits = spec.bitstring.bit.bitwidth
            else:
                raise P4ProgramError(
                    f"program {self.name}: register {register.preamble.alias} has cells that are not bit<W>"
                )
            registers[register.preamble.alias] = (register.size, bits)
        return registers


def load(name: str, build: Path | None = None) -> P4Program:
    """The program of the files NAME.json and NAME.p4info.txtpb; they are read once.

    Args:
        name: the program's name; or what `reference` makes of the absolute path of a BMv2 JSON file.
        build: the folder of compiled programs; None: the folders of Tailrace and of plug-ins are searched.

    Raises:
        P4ProgramError: a file is missing or invalid, or several folders contain the program.
    """
    json, _, info = name.partition(_INFO)
    if json.endswith(JSON) or "/" in json:
        return read(Path(json), Path(info) if info else None)
    if build is None:
        folders = [folder for folder in (P4_BUILD, *plugins.builds()) if (folder / f"{name}.json").exists()]
        if len(folders) > 1:
            raise P4ProgramError(f"program {name}: it is both in {folders[0]} and in {folders[1]}")
        if not folders and plugins.builds():
            raise P4ProgramError(_not_compiled(name, plugins.builds()))
        build = folders[0] if folders else P4_BUILD
    return read(build / f"{name}.json")


def _not_compiled(name: str, builds: Sequence[Path]) -> str:
    """The error for a missing program, with the command that compiles a plug-in's program."""
    # the folder of the plug-in that contains the P4 source
    build = next((build for build in builds if (build.parent / f"{name}.p4").exists()), builds[0])
    searched = ", ".join(map(str, (P4_BUILD, *builds)))
    command = f"python scripts/compile_p4.py -I p4src {build.parent} {build}"
    return f"program {name}: no {name}.json in {searched}; compile a plug-in's P4 by: {command}"


def reference(json_path: Path, info_path: Path | None = None) -> str:
    """The name by which `load` reads a program from these files; P4Info as for `read`."""
    return str(json_path) if info_path is None else f"{json_path}{_INFO}{info_path}"


def sha256_of(used: Iterable[P4Program]) -> str:
    """The hash of the programs of a network's switches; that of the program if all run the same."""
    hashes = [program.sha256 for program in used]
    return hashes[0] if len(set(hashes)) == 1 else hashlib.sha256(" ".join(hashes).encode()).hexdigest()


def read(json_path: Path, info_path: Path | None = None) -> P4Program:
    """A program from its files, which are read once.

    Args:
        json_path: the BMv2 JSON.
        info_path: its P4Info as text; None: NAME.p4info.txtpb in the same folder, or NAME.p4.p4info.txtpb as
            in the p4lang tutorials.

    Raises:
        P4ProgramError: a file is missing or invalid.
    """
    paths = tuple(path.absolute() for path in files(json_path, info_path))
    _check_present(*paths)
    return _read(json_path.name.removesuffix(JSON), *paths, tuple(map(stamp, paths)))


def files(json_path: Path, info_path: Path | None = None) -> tuple[Path, Path]:
    """The files that `read` reads: BMv2 JSON and P4Info."""
    if info_path is None:
        name = json_path.name.removesuffix(JSON)
        beside = [json_path.with_name(name + suffix) for suffix in _P4INFO]
        info_path = next((path for path in beside if path.exists()), beside[0])
    return json_path, info_path


def stamp(path: Path) -> tuple[int, int] | None:
    """Modification time and size of a file, which change with its content; None: there is no such file."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def _check_ids(info: p4i.P4Info) -> None:
    """Raises ValueError if a table or action profile refers to an object that is not in P4Info."""
    known = {item.preamble.id for kind in (info.tables, info.actions, info.action_profiles) for item in kind}
    known |= {item.preamble.id for kind in (info.direct_counters, info.direct_meters) for item in kind}
    for table in info.tables:
        ids = {ref.id for ref in table.action_refs} | {table.implementation_id, *table.direct_resource_ids}
        missing = ids - known - {0}
        if missing:
            raise ValueError(f"table {table.preamble.name}: no object has the id {min(missing)}")
    for profile in info.action_profiles:
        missing = set(profile.table_ids) - known
        if missing:
            raise ValueError(f"action profile {profile.preamble.name}: no table has the id {min(missing)}")


def parse_p4info(data: bytes) -> p4i.P4Info:
    """Parses P4Info, in text or binary format.

    Raises:
        ValueError: the data is not P4Info; the message is one line for the user.
    """
    info = p4i.P4Info()
    try:
        data = without_bom(data)
        text_format.Parse(data, info)
    except UnicodeDecodeError as error:
        raise ValueError(f"not P4Info: {error.reason}") from error
    except (ValueError, RecursionError, text_format.ParseError) as text_error:
        try:
            info = p4i.P4Info.FromString(data)
        except DecodeError:
            raise ValueError(
                f"not P4Info: {one_line(next(iter(str(text_error).splitlines()), 'not text'))}"
            ) from text_error
    if not info.ListFields():
        raise ValueError("not P4Info: it is empty")
    return info


def _check_present(json_path: Path, info_path: Path) -> None:
    """Raises P4ProgramError if the path is that of P4 source, or there is no P4Info beside it."""
    name, stem = json_path.name.removesuffix(JSON), json_path.stem
    if json_path.suffix == ".p4":
        command = f"p4c-bm2-ss --p4v 16 --p4runtime-files {stem}{_P4INFO[0]} -o {stem}{JSON} {name}"
        raise P4ProgramError(f"program {json_path}: P4 source, expected what p4c makes of it: {command}")
    if json_path.exists() and not info_path.exists() and info_path == json_path.with_name(name + _P4INFO[0]):
        tried = ", ".join(name + suffix for suffix in _P4INFO)
        raise P4ProgramError(f"program {name}: no P4Info in {json_path.parent}: expected one of {tried}")


@functools.lru_cache(_CACHED)
def _read(name: str, json_path: Path, info_path: Path, _stamps: Hashable) -> P4Program:
    # the stamps are part of the cache's key: a program that was compiled anew is read anew
    try:
        json, info_text = (read_bytes(path, MOST_TEXT_BYTES) for path in (json_path, info_path))
    except OSError as error:
        raise P4ProgramError(f"program {name}: {error.filename}: {error.strerror}") from None
    try:
        # parsing the text takes longer than the rest of a small network's set-up
        key = hashlib.sha256(info_text).hexdigest()
        octets = memoized("p4info", (key,), lambda: parse_p4info(info_text).SerializeToString())
        info = p4i.P4Info.FromString(octets)
        _check_ids(info)
    except ValueError as error:
        raise P4ProgramError(f"program {name}: {info_path}: {error}") from None
    digest = hashlib.sha256(info_text + b"\0" + json).digest()
    cookie = int.from_bytes(digest[:8], "big")
    return P4Program(name, json_path, info, json, digest.hex(), cookie)
