# SPDX-License-Identifier: Apache-2.0
"""From words such as flowcut:variant=ingress,buckets=64 to a scheme. Every module of this folder, and
`declaration` of every folder in it, may declare some.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Union

import msgspec
from msgspec.structs import replace

from tailrace import schemes
from tailrace.hosts.options.hf2t_words import Hf2tWords, asked_for
from tailrace.schemes.base import SCHEMES, Common, SchemeConfig
from tailrace.schemes.resolved import Resolved
from tailrace.words import Options, SpecError, keys, plugins

__all__ = ["SCHEMES", "parse_scheme", "resolved_of"]

for _module in iter_modules(schemes.__path__, "tailrace.schemes."):
    _name = f"{_module.name}.declaration" if _module.ispkg else _module.name
    if find_spec(_name) is not None:
        import_module(_name)


def parse_scheme(text: str) -> SchemeConfig:
    """The scheme that words describe.

    Raises:
        SpecError: unknown name, or bad option.
    """
    words, config = SCHEMES.parse(text)
    options = Options(words, [key.name for key in SCHEMES.keys(words.name)])
    structs = (type(config), Common, Hf2tWords)
    common = keys.read(words, Common, structs)
    config = replace(
        config,
        queue_limit_bytes=common.queue,
        red=common.red,
        hash_seed=common.seed,
        source_guard=common.guard,
        control_share=common.control,
        hf2t=keys.read(words, Hf2tWords, structs) if asked_for(options) else None,
    )
    return config.checked(options)


def resolved_of(document: object) -> Resolved:
    """The scheme in a network that `msgspec.to_builtins`, or JSON, made a document of.

    Raises:
        SpecError: it is none, or of a scheme that is not registered here.
    """
    plugins.load()
    try:
        found: Resolved = msgspec.convert(document, type=Union[tuple(_kinds(Resolved))])  # noqa: UP007
    except msgspec.ValidationError as error:
        raise SpecError(f"scheme: {error}") from None
    return found


def _kinds(kind: type[Resolved]) -> Iterator[type[Resolved]]:
    for heir in kind.__subclasses__():
        yield heir
        yield from _kinds(heir)
