# SPDX-License-Identifier: Apache-2.0
"""Parses specs such as flowcut:variant=ingress,buckets=64 into schemes. Schemes are declared in the modules
of this folder, and in the module `declaration` of each of its subfolders.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tailrace.hosts.options.hf2t_spec import DELAY, Hf2tSpec, hf2t_requested
from tailrace.schemes.base import SCHEMES, Common, SchemeConfig
from tailrace.schemes.resolved import Resolved
from tailrace.spec import Spec, SpecError, keys, plugins
from tailrace.spec.registry import load_folder
from tailrace.spec.schema import convert

__all__ = ["SCHEMES", "parse_scheme", "resolved_of", "with_scheme"]

Struct = TypeVar("Struct", bound=msgspec.Struct)

# imports all modules of schemes; each registers its schemes in SCHEMES
load_folder(__package__, "declaration")


def parse_scheme(text: str | Spec) -> SchemeConfig:
    """The scheme that a spec describes.

    Raises:
        SpecError: unknown name, or invalid option.
    """
    spec, config = SCHEMES.parse(text)
    structs = (type(config), Common, Hf2tSpec)
    # a spec has keys of all three structs; each call reads those of one, and accepts the others
    common = keys.read(spec, Common, structs)
    config = replace(
        config,
        queue_limit_bytes=common.queue,
        red=common.red,
        hash_seed=common.seed,
        source_guard=common.guard,
        control_share=common.control,
        hf2t=keys.read(spec, Hf2tSpec, structs) if hf2t_requested(spec) else None,
    )
    if config.hf2t is not None and not config.hf2t.delay and not config.by_source_port:
        raise spec.refused(DELAY, "with a scheme whose paths follow the UDP source port, such as ecmp")
    return config.checked(spec)


def with_scheme(document: Any, struct: type[Struct]) -> Struct:
    """Decodes a struct whose field `scheme` is a resolved scheme, from a document that msgspec encoded.

    Raises:
        KeyProblemError: the document is invalid.
        SpecError: the scheme is not registered here.
    """
    # msgspec would decode `scheme` only to subclasses of Resolved that existed when `struct` was defined
    shape = msgspec.defstruct(struct.__name__, [("scheme", Any)], bases=(struct,), kw_only=True)
    converted = convert(document, shape)
    values = {field: getattr(converted, field) for field in struct.__struct_fields__}
    return struct(**values | {"scheme": resolved_of(values["scheme"])})


def resolved_of(document: object) -> Resolved:
    """Decodes a resolved scheme from a document of `msgspec.to_builtins` or JSON.

    Raises:
        SpecError: the document is invalid, or its scheme is not registered here.
    """
    plugins.load()
    kinds = {kind.__name__: kind for kind in _kinds(Resolved)}
    name = document.get("kind") if isinstance(document, Mapping) else None
    if name not in kinds:
        raise SpecError(f"scheme: kind {name!r} is not known")
    try:
        converted: Resolved = msgspec.convert(document, type=kinds[name])
    except msgspec.ValidationError as error:
        raise SpecError(f"scheme: {error}") from None
    return converted


def _kinds(kind: type[Resolved]) -> Iterator[type[Resolved]]:
    for subclass in kind.__subclasses__():
        yield subclass
        yield from _kinds(subclass)
