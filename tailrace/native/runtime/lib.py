# SPDX-License-Identifier: Apache-2.0
"""ctypes view of tr_switch.h: structures and function signatures, nothing else."""

from __future__ import annotations

import ctypes
import functools
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_char_p,
    c_int,
    c_int32,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)

from tailrace.native.runtime.build import runtime_library

OK, EEXIST, ENOENT, EFULL, ERANGE, EINVAL, ENOMEM = 0, -1, -2, -3, -4, -5, -6
MAX_PORTS = 512
MAX_PRIORITIES = 8
ALWAYS_PPM = 1_000_000
NEVER = 2**64 - 1
PS_PER_NS = 1000
MAX_NS = NEVER // PS_PER_NS - 1
"""The last time in ns that the core can count (213 days)."""
DROP_COUNT = 23
TARGET_ACTION, TARGET_MEMBER, TARGET_GROUP = 0, 1, 2


class CSwitchConfig(Structure):
    """tr_switch_config"""

    _fields_ = [
        ("drop_port", c_uint32),
        ("priorities", c_uint32),
        ("tick_ps", c_uint64),
        ("queue_packets", c_uint32),
        ("queue_bytes", c_uint64),
        ("port_rate_bps", c_uint64),
        ("port_delay_ps", c_uint64),
        ("recirc_rate_bps", c_uint64),
        ("seed", c_uint64),
    ]


class CPfcLimits(Structure):
    """tr_pfc_limits"""

    _fields_ = [("xoff_bytes", c_uint64), ("xon_bytes", c_uint64), ("headroom_bytes", c_uint64)]


class CPfcWatchdog(Structure):
    """tr_pfc_watchdog"""

    _fields_ = [
        ("detect_ps", c_uint64),
        ("restore_ps", c_uint64),
        ("share_ppm", c_uint32),
        ("ignore", c_uint32),
    ]


class CPfcConfig(Structure):
    """tr_pfc_config"""

    _fields_ = [
        ("enabled", c_uint8),
        ("quanta", ctypes.c_uint16),
        ("of", CPfcLimits * MAX_PRIORITIES),
        ("watchdog", CPfcWatchdog),
    ]


class CPfcStats(Structure):
    """tr_pfc_stats"""

    _fields_ = [
        ("bytes", c_uint64),
        ("most_bytes", c_uint64),
        ("headroom_bytes", c_uint64),
        ("headroom_most_bytes", c_uint64),
        ("xoff_sent", c_uint64),
        ("xon_sent", c_uint64),
        ("received", c_uint64),
        ("pausing_ps", c_uint64),
        ("paused_ps", c_uint64),
        ("storms", c_uint64),
        ("storming", c_uint64),
        ("storm_dropped", c_uint64),
        ("storm_ps", c_uint64),
    ]


class CBufferConfig(Structure):
    """tr_buffer_config"""

    _fields_ = [
        ("bytes", c_uint64),
        ("port_bytes", c_uint64),
        ("alpha_num", c_uint32),
        ("alpha_den", c_uint32),
    ]


class CBufferLook(Structure):
    """tr_buffer_look_t"""

    _fields_ = [
        ("bytes", c_uint64),
        ("reserved_bytes", c_uint64),
        ("shared_bytes", c_uint64),
        ("shared_most_bytes", c_uint64),
        ("headroom_bytes", c_uint64),
        ("headroom_most_bytes", c_uint64),
        ("own_bytes", c_uint64),
        ("held_bytes", c_uint64),
    ]


class COut(Structure):
    """tr_out"""

    _fields_ = [
        ("port", c_uint32),
        ("len", c_uint32),
        ("virt", c_uint32),
        ("time_ps", c_uint64),
        ("data", c_void_p),
        ("slot", c_void_p),
    ]


class CPortStats(Structure):
    """tr_port_stats"""

    _fields_ = [
        ("rx_packets", c_uint64),
        ("rx_bytes", c_uint64),
        ("tx_packets", c_uint64),
        ("tx_bytes", c_uint64),
        ("dropped", c_uint64),
        ("pfc_sent", c_uint64),
        ("pfc_received", c_uint64),
        ("paused_ps", c_uint64),
        ("pfc_ignored", c_uint64),
    ]


class CAccount(Structure):
    """tr_account"""

    _fields_ = [
        ("rx_frames", c_uint64),
        ("made_frames", c_uint64),
        ("tx_frames", c_uint64),
        ("dropped_frames", c_uint64),
        ("held_frames", c_uint64),
        ("rx_virt", c_uint64),
        ("made_virt", c_uint64),
        ("tx_virt", c_uint64),
        ("dropped_virt", c_uint64),
        ("cut_virt", c_uint64),
        ("held_virt", c_uint64),
    ]


class CTarget(Structure):
    """tr_target"""

    _fields_ = [
        ("kind", c_uint32),
        ("id", c_uint32),
        ("data", POINTER(c_uint64)),
        ("limbs", c_uint32),
    ]


class CMeterRates(Structure):
    """tr_meter_rates"""

    _fields_ = [("cir", c_uint64), ("cburst", c_uint64), ("pir", c_uint64), ("pburst", c_uint64)]


class CReplica(Structure):
    """tr_replica"""

    _fields_ = [("port", c_uint32), ("instance", c_uint32)]


LOG_FN = CFUNCTYPE(None, c_void_p, c_int, c_char_p)

_U64P = POINTER(c_uint64)
_S, _U32, _U64 = c_void_p, c_uint32, c_uint64
_TARGET, _RATES = POINTER(CTarget), POINTER(CMeterRates)

# name: (result, arguments)
_SIGNATURES: dict[str, tuple[object, tuple[object, ...]]] = {
    "tr_switch_new": (c_void_p, (c_void_p, POINTER(CSwitchConfig))),
    "tr_switch_free": (None, (_S,)),
    "tr_switch_load": (c_int, (_S, c_void_p)),
    "tr_switch_exchange": (None, (_S, _S)),
    "tr_switch_clock": (None, (_S, _U64)),
    "tr_mem_limit": (None, (ctypes.c_long,)),
    "tr_switch_lock": (None, (_S,)),
    "tr_switch_unlock": (None, (_S,)),
    "tr_rx_virtual": (c_int, (_S, _U32, c_char_p, _U32, _U32, _U64)),
    "tr_run": (c_uint64, (_S, _U64)),
    "tr_pop": (c_int, (_S, POINTER(COut))),
    "tr_release": (None, (_S, c_void_p)),
    "tr_port_block": (None, (_S, _U32, c_int)),
    "tr_port_up": (None, (_S, _U32, c_int)),
    "tr_port_rate": (c_int, (_S, _U32, _U64)),
    "tr_port_delay": (c_int, (_S, _U32, _U64)),
    "tr_port_pfc": (c_int, (_S, _U32, POINTER(CPfcConfig))),
    "tr_pfc_read": (c_int, (_S, _U32, _U32, _U64, POINTER(CPfcStats))),
    "tr_pfc_tell_storms": (c_int, (_S, c_int, c_int)),
    "tr_buffer_set": (c_int, (_S, POINTER(CBufferConfig))),
    "tr_buffer_look": (None, (_S, POINTER(CBufferLook))),
    "tr_queue_depth": (c_int, (_S, _U32, _U32, _U32, _U64)),
    "tr_queue_rate_pps": (c_int, (_S, _U32, _U32, _U64)),
    "tr_queue_level": (c_int, (_S, _U32, _U32, POINTER(c_uint32), _U64P)),
    "tr_port_stats_read": (c_int, (_S, _U32, POINTER(CPortStats))),
    "tr_drops_read": (None, (_S, _U64P)),
    "tr_account_read": (None, (_S, POINTER(CAccount))),
    "tr_drop_name": (c_char_p, (c_uint32,)),
    "tr_set_log": (None, (_S, LOG_FN, c_void_p, c_int)),
    "tr_table_insert": (c_int, (_S, _U32, c_char_p, c_char_p, _U32, c_int32, _TARGET, _U64, _U64)),
    "tr_table_modify": (c_int, (_S, _U32, c_int, _TARGET, _U64)),
    "tr_table_delete": (c_int, (_S, _U32, c_int)),
    "tr_table_default": (c_int, (_S, _U32, _TARGET)),
    "tr_table_count": (c_int, (_S, _U32)),
    "tr_table_resize": (c_int, (_S, _U32, _U32)),
    "tr_entry_counter": (c_int, (_S, _U32, c_int, _U64P, _U64P)),
    "tr_entry_counter_set": (c_int, (_S, _U32, c_int, _U64, _U64)),
    "tr_entry_meter": (c_int, (_S, _U32, c_int, _RATES)),
    "tr_entry_last_hit": (c_int, (_S, _U32, c_int, _U64P)),
    "tr_table_expired": (
        c_int,
        (_S, _U32, _U64, POINTER(c_uint32), _U32, POINTER(c_int), c_int),
    ),
    "tr_member_add": (c_int, (_S, _U32, _TARGET)),
    "tr_member_modify": (c_int, (_S, _U32, c_int, _TARGET)),
    "tr_member_delete": (c_int, (_S, _U32, c_int)),
    "tr_group_add": (c_int, (_S, _U32)),
    "tr_group_set": (c_int, (_S, _U32, c_int, POINTER(c_int), _U32)),
    "tr_group_delete": (c_int, (_S, _U32, c_int)),
    "tr_counter_read": (c_int, (_S, _U32, _U64, _U64, _U64P)),
    "tr_counter_write": (c_int, (_S, _U32, _U64, _U64, _U64P)),
    "tr_register_read": (c_int, (_S, _U32, _U64, _U64, _U64P)),
    "tr_register_write": (c_int, (_S, _U32, _U64, _U64, _U64P)),
    "tr_meter_read": (c_int, (_S, _U32, _U64, _U64, _RATES, POINTER(c_uint8))),
    "tr_meter_write": (c_int, (_S, _U32, _U64, _U64, _RATES)),
    "tr_vset_write": (c_int, (_S, _U32, c_char_p, c_char_p, _U32)),
    "tr_mcast_set": (c_int, (_S, _U32, POINTER(CReplica), _U32)),
    "tr_mcast_delete": (c_int, (_S, _U32)),
    "tr_clone_set": (c_int, (_S, _U32, POINTER(CReplica), _U32, _U32, _U32)),
    "tr_clone_delete": (c_int, (_S, _U32)),
    "tr_digest_pop": (c_int, (_S, _U64P, _U64P, _U32)),
}


@functools.cache
def load() -> ctypes.CDLL:
    """The runtime library with all signatures set."""
    lib = runtime_library()
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = list(arguments)
    return lib
