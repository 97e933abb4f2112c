# SPDX-License-Identifier: Apache-2.0
"""The socket of a running network: its links, events and packets."""

from __future__ import annotations

import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.controller.control import ControlClient
from tailrace.controller.inband.relay import RelayError
from tailrace.spec import SpecError
from tests.controller.live import FRAMES, RememberedNetwork, live
from tests.eventually import LONG_S, eventually

WORDS = "leaf-spine:leaves=2,spines=2,hosts=1,rate=10Gbps"
SCALE = 2500.0


@pytest.fixture(scope="module", name="network")
def served_network() -> Iterator[RememberedNetwork]:
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        with live(Path(folder) / "s", "leaf-spine:leaves=2,spines=2,hosts=1,rate=4Mbps", SCALE) as network:
            yield network
        assert list(Path(folder).iterdir()) == []


def call(network: RememberedNetwork, op: str, **fields: object) -> list[dict]:
    with ControlClient(network.path) as client:
        return list(client.call(op, **fields))


@given(
    link=st.sampled_from(["leaf1-spine2", "spine1-leaf2"]),
    factor=st.fractions(min_value=Fraction(1, 1000), max_value=5),
)
def test_rates_are_as_specified(network: RememberedNetwork, link: str, factor: Fraction) -> None:
    """Not as they are in the slowed network; a link may be named from either end."""
    network.set.clear()
    rate_bps = round(factor * 10**10)
    assert call(network, "set", link=link, to=f"{rate_bps}bps") == [{}]
    ((ends, set_to),) = network.set.items()
    assert ends == (("leaf1", "spine2") if link == "leaf1-spine2" else ("leaf2", "spine1"))
    assert set_to == rate_bps / 10**10
    rows = {row["link"]: row for row in call(network, "state")[1:]}
    assert set(rows) == {
        *("h1-leaf1", "h2-leaf2"),
        *("leaf1-spine1", "leaf1-spine2", "leaf2-spine1", "leaf2-spine2"),
    }
    assert {row["rate"] for name, row in rows.items() if name != "-".join(ends)} == {"10Gbps"}


def test_up_and_down(network: RememberedNetwork) -> None:
    for state in ("down", "up"):
        assert call(network, "set", link="leaf1-h1", to=state) == [{}]
        rows = {row["link"]: row["state"] for row in call(network, "state")[1:]}
        assert rows["h1-leaf1"] == state


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"link": "leaf1-spine3", "to": "down"}, "no link 'leaf1-spine3'; did you mean leaf1-spine"),
        ({"link": "", "to": "down"}, "no link ''; expected"),
        ({"link": "leaf1-leaf2", "to": "up"}, "no link 'leaf1-leaf2'"),
        ({"link": "h1-leaf1", "to": "1Gbps"}, "h1-leaf1: the rate of a NIC is fixed"),
        ({"link": "leaf1-spine1", "to": "fast"}, "'fast' is no number"),
        ({"link": "leaf1-spine1", "to": "1us"}, "is no rate"),
        ({"link": "leaf1-spine1", "to": "1e30bps"}, "1e30bps"),
        ({"link": "leaf1-spine1", "to": "-1bps"}, "-1bps"),
    ],
)
def test_what_is_refused(network: RememberedNetwork, fields: dict[str, str], message: str) -> None:
    network.set.clear()
    with pytest.raises(SpecError) as caught:
        call(network, "set", **fields)
    assert message in str(caught.value)
    assert network.set == {}


@pytest.mark.parametrize(
    "request_",
    [
        *(b"", b"nonsense\n", b"[]\n", b"{}\n", b'{"op": "fly"}\n', b'{"op": "state", "x": 1}\n'),
        *(b'{"op": "set", "link": 7}\n', b'{"op": "capture", "link": "x"}\n', b"[" * 100_000 + b"\n"),
        b"x" * (2 << 20) + b"\n",
    ],
)
def test_bad_requests_end_the_connection_and_nothing_else(
    network: RememberedNetwork, request_: bytes
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(LONG_S)
        client.connect(str(network.path))
        try:
            client.sendall(request_)
            client.shutdown(socket.SHUT_WR)
            answer = client.makefile("rb").read()
        except ConnectionError:
            answer = b""  # closed before it was read to its end
    assert answer == b"" or "error" in json.loads(answer)
    assert call(network, "state")[0] == {"status": "running"}


def test_events_are_followed_to_the_end() -> None:
    """Those so far, then each as it comes; the end of the network is the end, and nothing is lost before it."""
    with tempfile.TemporaryDirectory(prefix="live-") as folder:
        with live(Path(folder) / "s", WORDS) as network:
            network.log += [{"event": str(number)} for number in range(3)]
            assert len(call(network, "events")) == 3
            followed: list[dict] = []
            thread = threading.Thread(target=lambda: followed.extend(call(network, "events", follow=True)))
            thread.start()
            for number in range(3, 100):
                network.log.append({"event": str(number)})
                time.sleep(0.001)
        thread.join(LONG_S)
    assert [event["event"] for event in followed] == [str(number) for number in range(100)]


def test_a_capture_ends_with_its_client(network: RememberedNetwork) -> None:
    with ControlClient(network.path) as client:
        messages = list(islice(client.call("capture", link="leaf1-spine1"), 12))
    assert messages == [{}, *FRAMES, *FRAMES, FRAMES[0]]
    assert eventually(lambda: network.closed == 1)


def test_only_the_owner_may_use_it(network: RememberedNetwork) -> None:
    assert network.path.stat().st_mode & 0o777 == 0o600


def test_paths_that_cannot_be_used(tmp_path: Path) -> None:
    for path in (tmp_path / "missing" / "s", tmp_path / ("x" * 200)):
        with pytest.raises(RelayError, match="cannot listen"):
            RememberedNetwork(path, WORDS).start_thread()
