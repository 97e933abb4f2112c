# SPDX-License-Identifier: Apache-2.0
"""Memory goes back to the system when what took it has gone."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import pytest

from tailrace.native.server import giving_back
from tailrace.native.server.giving_back import COLLECT_S, TIMES, TRIM_S, GivingBack
from tailrace.words import heap

ROOT = Path(__file__).resolve().parents[3]
HEAP = """
import os
from soak.realtime.measure import sample
from tailrace.native.server.giving_back import GivingBack
from tailrace.words import heap

def own_mib():
    return sample(os.getpid(), 0, calm=True).own_bytes >> 20

before = own_mib()
heap.one_heap()
pieces = [bytes(1000) for _ in range(60_000)]
pieces.append(last := bytes(1000))  # above all the others in the heap
full = own_mib()
pieces.clear()
kept = own_mib()
GivingBack().give_back(0.0)
print(full - before, kept - before, own_mib() - before)
"""


def test_a_heap_in_pieces_goes_back() -> None:
    """What glibc keeps for ever, because something lives above it, is given back."""
    if not heap.can_trim():
        pytest.skip("not glibc")
    done = subprocess.run([sys.executable, "-c", HEAP], cwd=ROOT, capture_output=True, text=True, check=True)
    full, kept, left = map(int, done.stdout.split())
    assert full >= 50 and kept >= 50, "or this tests nothing"
    assert left <= 15


def test_when() -> None:
    """Not before something was freed; then twice, not sooner after one another than that."""
    back = GivingBack()
    assert not back.due(0.0)
    back.freed()
    times = [now_s / 10 for now_s in range(1000) if back.due(now_s / 10)]
    assert times == [TRIM_S * number for number in range(TIMES)]
    back.freed()
    assert back.due(100.0) and not back.due(100.0 + TRIM_S / 2)


class _Call:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.error = self


def _old() -> weakref.ref[_Call]:
    """A call that has lived for long, and is over."""
    call = _Call()
    for _ in range(3):
        gc.collect()
    return weakref.ref(call)


def test_calls_that_lived_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """They go, too, at most once in a while, and not where a search would take long."""
    monkeypatch.setattr(giving_back, "MOST_OBJECTS", 1 << 60)  # whatever else this process holds
    gc.disable()
    try:
        back = GivingBack()
        calls = [_old()]
        back.give_back(0.0)
        assert calls[0]() is None
        calls.append(_old())
        back.give_back(COLLECT_S / 2)
        assert calls[1]() is not None
        back.give_back(COLLECT_S)
        assert calls[1]() is None
        monkeypatch.setattr(giving_back, "MOST_OBJECTS", 10)
        calls.append(_old())
        back.give_back(3 * COLLECT_S)
        assert calls[2]() is not None
    finally:
        gc.enable()
