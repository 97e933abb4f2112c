# SPDX-License-Identifier: Apache-2.0
"""Transports in words: a name such as ``gbn``, and for dcqcn what DCQCN's parameters are.

    dcqcn       cnp=50us,alpha=55us,timer=55us: times, counter=10MB: bytes, gain=0.00390625, steps=5,
                ai=40Mbps,hai=400Mbps,least=10Mbps: rates, clamp=yes (see DcqcnConfig, which has the defaults)

All are at full speed, as everything in words is.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hosts.config import DCQCN, TRANSPORTS
from hosts.config_lossless import DcqcnConfig
from spec import Options, SpecError, parse

_DCQCN_KEYS = ("cnp", "alpha", "timer", "counter", "gain", "steps", "ai", "hai", "least", "clamp")


@dataclass(frozen=True, slots=True)
class Transport:
    """A transport: its name, one of TRANSPORTS, and the settings of dcqcn, whether it is that or not."""

    name: str
    dcqcn: DcqcnConfig = field(default_factory=DcqcnConfig)


def parse_transport(text: str) -> Transport:
    """The transport that words describe.

    Raises:
        SpecError: they describe none; one line says why.
    """
    words = parse(text, "transport")
    if words.name not in TRANSPORTS:
        raise SpecError(f"expected one of {', '.join(TRANSPORTS)}, found {text!r}")
    options = Options(words, _DCQCN_KEYS if words.name == DCQCN else ())
    default = DcqcnConfig()
    gain = options.number("gain", default.gain, least=0, most=1)
    if gain == 0:
        raise options.error("gain", "more than 0")
    return Transport(
        words.name,
        DcqcnConfig(
            cnp_ns=options.time_ns("cnp", default.cnp_ns, least=1),
            alpha_ns=options.time_ns("alpha", default.alpha_ns, least=1),
            gain=gain,
            timer_ns=options.time_ns("timer", default.timer_ns, least=1),
            counter_bytes=options.size_bytes("counter", default.counter_bytes, least=1),
            recovery_steps=options.integer("steps", default.recovery_steps, least=0),
            additive_bps=options.rate_bps("ai") if "ai" in options else None,
            hyper_bps=options.rate_bps("hai") if "hai" in options else None,
            least_bps=options.rate_bps("least", default.least_bps),
            clamp=options.flag("clamp", default=default.clamp),
        ),
    )
