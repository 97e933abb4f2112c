# SPDX-License-Identifier: Apache-2.0
"""Strict JSON decoder: accepts only values of bounded size that are unambiguous and can be encoded again."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from tailrace.spec.files import json_object
from tailrace.switch.compiler.errors import CompilerError, located

MAX_BYTES = 64 << 20
"""Maximum size of a program's JSON. Google's SAI pipeline, with 100 tables, has 4 MB."""

MAX_DIGITS = 20
"""Maximum number of decimal digits: enough for 64 bits. BMv2 has hexadecimal strings for wider numbers."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def decode_json(text: bytes, source: str) -> Any:
    """Reads JSON text in UTF-8.

    Raises:
        CompilerError: the text is not JSON, too long or nested too deeply; or it contains a duplicate key,
            NaN or Infinity, an integer of more than 20 digits or an unpaired surrogate.
    """

    def refuse(why: str) -> NoReturn:
        raise CompilerError(located(source, "not a JSON file", why)) from None

    if len(text) > MAX_BYTES:
        refuse(f"it has {len(text)} bytes; at most {MAX_BYTES} are allowed")
    try:
        characters = text.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        refuse(f"byte {e.start} is not UTF-8")
    try:
        value = json.loads(
            characters,
            object_pairs_hook=json_object,
            parse_int=_integer,
            parse_float=_real,
            parse_constant=_constant,
        )
    except RecursionError:
        refuse("it is nested too deeply")
    except ValueError as e:
        refuse(str(e))
    if _SURROGATE.search(characters):
        try:
            # the decoder has joined surrogate pairs; an unpaired surrogate cannot be encoded in UTF-8
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            refuse("a string contains half of a surrogate pair")
        except RecursionError:
            refuse("it is nested too deeply")
    return value


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_DIGITS:
        raise ValueError(f"a number has more than {MAX_DIGITS} digits")
    return int(digits)


def _real(digits: str) -> float:
    if len(digits) > 64:
        raise ValueError("a number has more than 64 digits")
    return float(digits)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
