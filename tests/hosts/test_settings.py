# SPDX-License-Identifier: Apache-2.0
"""Settings of NICs that make no sense: each is refused in one line that names it."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.hosts.errors import ConfigError
from tailrace.hosts.options.dcqcn import DcqcnConfig, HermesNicConfig
from tailrace.hosts.options.dctcp import DctcpConfig
from tailrace.hosts.options.hf2t import Hf2tConfig
from tailrace.hosts.options.nic import (
    FlowcutNicConfig,
    MpRdmaNicConfig,
    NicConfig,
    SteeringConfig,
)
from tailrace.hosts.options.tcp import TcpConfig

HF2T = {"threshold_ns": 8_500, "percentile": 9_900, "min_thr": 20, "max_thr": 80, "train_gaps": 1_000}
OUT_OF_BOUNDS: dict[type, list[tuple[str, Any]]] = {
    NicConfig: [
        *(("transport", "quic"), ("timeout", "never"), ("mtu_bytes", 0), ("mtu_bytes", 9001)),
        *(("window_bytes", 0), ("data_priority", 8), ("bitmap_packets", 1 << 22), ("first_psn", -1)),
    ],
    DcqcnConfig: [("cnp_ns", 0), ("counter_bytes", -1), ("recovery_steps", -1), ("gain", 0.0)],
    DctcpConfig: [
        *(("cut_packets", -0.1), ("adapt_rtts", 0.0), ("adapt_scale", -0.1), ("adapt_scale", 1.1)),
        ("increase_packets", -1.0),
    ],
    FlowcutNicConfig: [("alpha", 0.0), ("rtt_threshold", 0.5), ("age_ns", 0), ("resume_bytes", -1)],
    HermesNicConfig: [("rtt_high", 0.1), ("ecn_better", 2), ("stale_ns", 0)],
    Hf2tConfig: [
        *(("percentile", 4_999), ("percentile", 10_000), ("min_thr", 0), ("threshold_ns", 0), ("tick_ns", 0)),
        *(("max_thr", 19), ("train_gaps", 99), ("t_ns", 0), ("spare_bytes", -1), ("margin_ns", -1)),
    ],
    MpRdmaNicConfig: [("initial_bytes", -1), ("delta_packets", 0), ("probe", 1.5)],
    SteeringConfig: [
        *(("algorithm", "best"), ("explore_threshold", -1), ("ecn_threshold", -1), ("min_bias_factor", -0.5)),
        *(("keep_ns", -1), ("buffer", 0), ("timer_ns", 0), ("epoch_ns", 0), ("epochs", 0)),
        *(("ecn_rate", 1.5), ("marked_share", -0.1), ("ecn_gain", 0.0)),
    ],
    TcpConfig: [("initial_packets", 0), ("burst_bytes", 0), ("burst_bytes", 2 << 20), ("duplicates", 0)],
}


@pytest.mark.parametrize("struct", OUT_OF_BOUNDS, ids=lambda struct: struct.__name__)
def test_a_setting_out_of_its_bounds_is_named_with_its_value(struct):
    for name, value in OUT_OF_BOUNDS[struct]:
        usual = HF2T if struct is Hf2tConfig else {}
        with pytest.raises(
            ConfigError, match=rf"^NIC settings: {name} (is )?'?{value}[^\n]*expected [^\n]+$"
        ):
            struct(**{**usual, name: value})


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        ({"transport": "gbn", "steering": SteeringConfig()}, "steering needs transport dctcp, not gbn"),
        ({"transport": "dctcp", "steering": SteeringConfig("hermes")}, "steering needs transport dcqcn,"),
        ({"transport": "dcqcn", "steering": SteeringConfig("ops")}, "steering needs transport dctcp,"),
        (
            {"transport": "dctcp", "steering": SteeringConfig(), "flowcut_nic": FlowcutNicConfig()},
            "flowcut_nic and steering both choose the source port",
        ),
        ({"transport": "mp-rdma", "flowcut_nic": FlowcutNicConfig()}, "both choose the source port"),
        ({"transport": "mp-rdma", "ack_every": 2}, "ack_every is 2, expected 1"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(settings, needed):
    with pytest.raises(ConfigError, match=f"^NIC settings: [^\n]*{needed}"):
        NicConfig(**settings)
