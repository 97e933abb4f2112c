# SPDX-License-Identifier: Apache-2.0
"""The parameters of schemes as a listing: how they are written, what they mean, and what they are if not
given.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tailrace.controller.listing.listing import Column, Listing, Row
from tailrace.hosts.options.hf2t_words import HF2T, Hf2tWords
from tailrace.p4rt.values import Value, text_of
from tailrace.schemes.defaults import needs_marks, resolve
from tailrace.schemes.dragonfly.paths import GRAINS, PATHS
from tailrace.schemes.registry import (
    ALPHA_STEPS,
    FIRST_PATHS,
    VARIANTS,
    BoundedConfig,
    SchemeConfig,
    parse_scheme,
)
from tailrace.schemes.rlb.declaration import LIMITS
from tailrace.schemes.rlb.declaration import VARIANTS as RLB_VARIANTS
from tailrace.schemes.selectors import LETFLOW_VARIANTS
from tailrace.schemes.spritz.declaration import CONTROLS, DRAWS, OVERS, WEIGHTS
from tailrace.schemes.spritz.declaration import VARIANTS as SPRITZ_VARIANTS
from tailrace.topology import Topology
from tailrace.words import SpecError
from tailrace.words.units import format_bytes, format_time


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of a scheme's words. `attribute` is the field of its configuration, empty where it has none of
    its own.
    """

    key: str
    attribute: str
    values: str
    meaning: str


_FLAG = "on|off"
_COMMON = (
    _Key("queue", "queue_limit_bytes", "size", "tail drop of data, for each egress queue; 0: no limit"),
    _Key("kmin", "", "size", "ECN marking by RED begins here; goes with kmax"),
    _Key("kmax", "", "size", "from here on every packet is marked"),
    _Key("pmax", "", "0 to 1", "share of packets marked just below kmax"),
    _Key("seed", "hash_seed", "32-bit number", "makes the switches' hashes differ from run to run"),
    _Key("guard", "source_guard", _FLAG, "hosts send with their own addresses only"),
    _Key("control", "control_share", "0 to 1", "share of a host's link for control packets; 0: no limit"),
)
_HF2T = (
    _Key(HF2T, "percentile", "50 to 99.99, on or off", "NICs stretch gaps from this percentile of them on"),
    _Key("min_thr", "min_thr", "packets", "fewer since the last stretched gap: only longer gaps are"),
    _Key("max_thr", "max_thr", "packets", "more since then: shorter gaps are, too"),
    _Key("dynamic", "dynamic", _FLAG, "min_thr and max_thr count"),
    _Key("stretch", "stretch_ns", "time", "gaps are stretched to this, or to the scheme's own gap"),
    _Key("train", "train", "number from 100", "gaps from which a NIC learns the percentile"),
    _Key("t", "t_ns", "time", "gaps from this on are stretched, and nothing is learnt"),
    _Key("spare", "spare_bytes", "size", "flows of at most this size are left alone"),
    _Key("retrain", "retrain", _FLAG, "NICs learn anew when gaps are not what they were"),
)
"""Of every scheme, too: fields of Hf2tWords. All but the first need it."""
_PATH = (
    _Key("path", "path", "|".join(PATHS), "paths to take; mixed: minimal or Valiant's, by a coin"),
    _Key("share", "minimal_share", "0 to 1", "of minimal paths where path=mixed"),
)
_GAP = _Key("gap", "gap_ns", "time", "a pause of at least this begins a new flowlet")
_CELL = _Key("cell", "cell_bytes", "size", "so many bytes of a flow go one way, the next ones the next way")
_BOUNDED = (
    _Key("trim", "trim", _FLAG, "what exceeds a queue's limit loses its payload, and not all"),
    _Key("repair", "repair", _FLAG, "default routes lead around failed links"),
    _Key("marks", "marks", _FLAG, "hosts may mark packets that follow their EV in every mode"),
    _Key("frame", "frame_bytes", "size", "of a full frame; experiments have that of their packets"),
)
"""Of schemes over bounded simple paths; where they run another program these have no meaning."""

_ROUTED = (
    _Key("per", "grain", "|".join(GRAINS), "what keeps a path"),
    _GAP,
    _Key("draw", "draw", "|".join(DRAWS), "detours by groups of a Dragonfly, or drawn hop by hop"),
    *_BOUNDED,
)
_WEIGHTED = (
    _Key("weights", "weights", "|".join(WEIGHTS), "how paths are drawn: the shorter the likelier, or alike"),
    _Key("scale", "scale", "more than 0", "factor of all weights but the longest path's"),
    *_BOUNDED,
)
_KEYS: dict[str, tuple[_Key, ...]] = {
    "ecmp": (
        _Key("over", "over", "|".join(OVERS), "minimal paths, or all bounded simple paths, drawn by the NIC"),
        *_BOUNDED,
    ),
    "spray": (),
    "letflow": (
        _Key("variant", "variant", "|".join(LETFLOW_VARIANTS), f"{HF2T}: the same as {HF2T}=on"),
        _GAP,
        *_PATH,
    ),
    "presto": (_CELL,),
    "drill": (),
    "hermes": (),
    "rlb": (
        _Key("variant", "variant", "|".join(RLB_VARIANTS), "the scheme whose choices are checked"),
        _Key("pfc", "pause_bytes", "size", "of an ingress queue at which PFC pauses its sender"),
        _Key("qth", "warn_bytes", "size", "of an ingress queue below which no pause is predicted"),
        _Key("dt", "dt_ns", "time", "over which the growth of an ingress queue is measured"),
        _Key("flows", "flows", "number from 1", "of an incast, for which the bounds of qth are"),
        _Key("margin", "margin_ns", "time", "a pause that is so near is warned of"),
        _Key("valid", "valid_ns", "time", "a warning that is not renewed is forgotten after so long"),
        _Key("probe", "probe_ns", "time", "each path is measured once in so long"),
        _Key("age", "keep_ns", "time", "an RTT that is older does not count"),
        _Key("stay", "stay_ns", "time", "a flow that was moved stays until it has been idle for longer"),
        _Key("limit", "limit", "|".join(LIMITS), "of recirculations; dynamic: RLB*"),
        _Key("most", "most", "0 to 255", "recirculations of a packet"),
        _Key("fault", "fault", "0 to 255", "recirculations, on average, that tell of a failure; 0: none do"),
        _Key("interval", "fault_ns", "time", "over which that average is taken, at least"),
        _Key("hold", "hold_ns", "time", "a path that failed is not used for so long the first time"),
        _CELL,
        _GAP,
    ),
    "minimal": _ROUTED,
    "valiant": _ROUTED,
    "ugal-l": _ROUTED,
    "mp-rdma": (),
    "spritz": (
        _Key("variant", "variant", "|".join(SPRITZ_VARIANTS), "good paths are kept, or used once each"),
        _Key("explore", "explore_packets", "packets", "after so many a path is drawn all the same"),
        _Key("ecn", "ecn_packets", "packets", "a path with more marks than this is not used again"),
        _Key("buffer", "buffer", "number from 1", "good paths that are remembered"),
        _Key("timer", "timer_ns", "time", "a path on which a packet vanished is not drawn for so long"),
        _Key(
            "bias", "bias", "number", "weight of the shortest path under marks everywhere; 0: twice its own"
        ),
        _Key("mode", "control", "|".join(CONTROLS), "NICs choose paths, or classes of paths by VLAN tag"),
        *_WEIGHTED,
    ),
    "ops": _WEIGHTED,
    "flicr": _WEIGHTED,
    "flowcut": (
        _Key("variant", "variant", "|".join(VARIANTS), "state at every switch, at the first, or in the NICs"),
        _Key("buckets", "buckets", "power of two", "buckets of the flow table, four ways each"),
        _Key("age", "age_ns", "time", "an entry that was silent for so long is deleted"),
        _Key("rtt", "rtt_threshold", "number from 1", "drain above this average, in idle round trips"),
        _Key("growth", "growth_threshold", "number or off", "drain above this growth of the average per ACK"),
        _Key("alpha", "alpha", f"multiple of 1/{ALPHA_STEPS}", "weight of the newest ACK in both averages"),
        _Key(
            "left", "min_left_packets", "packets", "drain only if so many of the message are left; 0: always"
        ),
        _Key("resume", "resume_bytes", "size", "resume when so little is in flight; 0 keeps the order"),
        _Key("credit", "credit_bytes", "size", "what a source may still send after XOFF; 0: plain XOFF"),
        _Key("first", "first_path", "|".join(FIRST_PATHS), "path of the packets before the first ACK"),
        _Key("slowest", "slowest_fraction", "0 to 1", "links may run at this share of their rate; sets age"),
        *_PATH,
    ),
}
_COLUMNS = (
    Column("scheme", key=True),
    Column("key", key=True),
    Column("values"),
    Column("default"),
    Column("meaning"),
)
_BY_TOPOLOGY, _OFF = "by topology", "off"
_OPEN = {
    "buckets": "all there are",
    "control_share": "by variant",
    "train": f"by {HF2T}",
    "t_ns": "learnt",
}
"""What stands for None, by field; for others it follows from the topology."""


def listing(names: Sequence[str], topology: Topology | None) -> Listing:
    """A row a parameter.

    Args:
        names: of schemes; none: all.
        topology: to compute the defaults that follow from one.

    Raises:
        SpecError: unknown scheme.
    """
    for name in names:
        if name not in _KEYS:
            raise SpecError(f"scheme {name!r} is not known; expected {', '.join(_KEYS)}")
    rows = [row for name in _KEYS if not names or name in names for row in _rows(name, topology)]
    return Listing("schemes", _COLUMNS, tuple(rows))


def _rows(name: str, topology: Topology | None) -> Iterator[Row]:
    config = parse_scheme(name)
    if topology is not None:
        config = resolve(config, topology)
    for key in (*_KEYS[name], *_COMMON):
        yield _row(name, key, _default(config, key))
    given = Hf2tWords() if config.hf2t is None else config.hf2t
    for key in _HF2T:
        is_off = key.key == HF2T and config.hf2t is None
        yield _row(name, key, _OFF if is_off else _default(given, key))


def _row(name: str, key: _Key, default: Value) -> Row:
    return {
        "scheme": name,
        "key": key.key,
        "values": key.values,
        "default": default,
        "meaning": key.meaning,
    }


def _red_default(config: SchemeConfig, key: str) -> Value:
    """Of kmin, kmax and pmax; some schemes mark by default, from where the topology says."""
    red = config.red
    if red is None:
        marks = needs_marks(config) or (isinstance(config, BoundedConfig) and config.mode)
        return _BY_TOPOLOGY if marks else _OFF
    if key == "pmax":
        return text_of(red.pmax_permille / 1000)
    return format_bytes(red.kmin_bytes if key == "kmin" else red.kmax_bytes)


def _default(config: SchemeConfig | Hf2tWords, key: _Key) -> Value:
    if isinstance(config, SchemeConfig) and not key.attribute:
        return _red_default(config, key.key)
    value = getattr(config, key.attribute)
    if isinstance(value, bool):
        return "on" if value else _OFF
    if value is None:
        return _OPEN.get(key.attribute, _BY_TOPOLOGY)
    if value == math.inf:
        return _OFF
    if key.attribute.endswith("_ns"):
        return format_time(value)
    if key.attribute.endswith("_bytes"):
        return format_bytes(value)
    return text_of(value)
