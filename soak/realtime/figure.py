# SPDX-License-Identifier: Apache-2.0
"""The figure of a run: memory, descriptors and latency over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MIB = 1 << 20


def draw(result: dict[str, Any], path: Path) -> None:
    """Draws a result of `Soak.soak`."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (memory, descriptors, latency) = plt.subplots(
        3, sharex=True, figsize=(9, 9), layout="constrained"
    )
    for name, samples in result["samples"].items():
        minutes = [one.at_s / 60 for one in samples]
        (line,) = memory.plot(minutes, [one.own_bytes / MIB for one in samples], lw=0.6, alpha=0.5)
        calm = [one for one in samples if one.calm]
        calm_minutes = [one.at_s / 60 for one in calm]
        sizes = [one.own_bytes / MIB for one in calm]
        memory.plot(calm_minutes, sizes, "o", ms=2.5, color=line.get_color(), label=name)
        descriptors.plot(
            minutes, [one.descriptors for one in samples], lw=0.6, alpha=0.5, color=line.get_color()
        )
        counts = [one.descriptors for one in calm]
        descriptors.plot(calm_minutes, counts, "o", ms=2.5, color=line.get_color(), label=name)
    memory.set_ylabel("anonymous memory (MiB)")
    descriptors.set_ylabel("descriptors")
    descriptors.set_ylim(bottom=0)
    for name, found in result["latencies"].items():
        minutes = [at_s / 60 for at_s, _ in found]
        # a hundred thousand of them: pixels, whose legend is a larger mark of the same colour
        (dots,) = latency.plot(minutes, [1000 * took for _, took in found], ",")
        latency.plot([], [], "o", ms=4, color=dots.get_color(), label=name)
    latency.set_yscale("log")
    latency.set_ylabel("latency (ms)")
    latency.set_xlabel("minutes; dots: calm moments")
    memory.legend(frameon=False, fontsize=8)
    latency.legend(fontsize=8, loc="upper left", ncols=4)
    figure.savefig(path, dpi=110)
    plt.close(figure)
