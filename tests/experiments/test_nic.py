# SPDX-License-Identifier: Apache-2.0
"""The settings of NICs that follow from the scheme."""

from __future__ import annotations

import pytest

from tailrace.experiments.plan.nic import nic_config
from tailrace.hosts.gaps.histogram import PERMYRIAD
from tailrace.hosts.options import hf2t as config_hf2t
from tailrace.hosts.options import hf2t_spec as scheme_hf2t
from tailrace.hosts.options.transports import Dctcp
from tailrace.p4rt.target import target
from tailrace.schemes.base import resolve
from tailrace.schemes.registry import parse_scheme
from tailrace.schemes.resolved import SchemeContext
from tailrace.topology import parse_topology

_TOPOLOGY = parse_topology("dragonfly:p=1,a=2,h=1")


def test_what_a_timeout_tells_can_be_chosen() -> None:
    """And how often it doubles; both are chosen by us, for the paper does not tell."""
    context = SchemeContext(mtu_bytes=1024, window_bytes=65536, transport="dctcp")
    scheme = resolve(parse_scheme("spritz:keep=3us"), _TOPOLOGY, context)
    chosen = Dctcp(timeout="loss", rto_backoff=4)
    virtual = target("virtual")
    config = nic_config(_TOPOLOGY, scheme, context, chosen, reorder=None, switches=virtual)
    assert ("loss", 4) == (config.timeout, config.rto_backoff)
    assert config.steering is not None
    assert config.steering.keep_ns == 3_000


@pytest.mark.parametrize("scheme", ["minimal:draw=hop", "ecmp:over=all", "flicr", "ops", "spritz"])
@pytest.mark.parametrize(("trim", "timeout"), [("on", "path"), ("off", "loss")])
def test_a_timeout_is_a_loss_only_where_nothing_is_trimmed(scheme: str, trim: str, timeout: str) -> None:
    """With trimming a timeout tells of a dead path (Spritz §V-A)."""
    words = f"{scheme}{',' if ':' in scheme else ':'}trim={trim}"
    context = SchemeContext(mtu_bytes=1024, window_bytes=65536, transport="dctcp")
    config = nic_config(
        _TOPOLOGY,
        resolve(parse_scheme(words), _TOPOLOGY, context),
        context,
        Dctcp(),
        reorder=None,
        switches=target("virtual"),
    )
    assert config.timeout == timeout
    assert config.rto_backoff == 0
    assert config.transport == "dctcp"


def test_words_of_hf2t_allow_what_nics_allow() -> None:
    """Their bounds are those of the NIC's settings, which the controller does not know."""
    assert scheme_hf2t.LEAST_PERCENTILE * PERMYRIAD == 100 * config_hf2t.LEAST_PERCENTILE
    assert 100 * scheme_hf2t.PERCENTILE_STEPS == PERMYRIAD
