# SPDX-License-Identifier: Apache-2.0
"""One run: a backend runs a plan, and the backend's measurements become a result."""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from tailrace.experiments.plan.plan import Plan
from tailrace.results.result import Result
from tailrace.results.run_result import result_of
from tailrace.sim.outcome import Backend, Progress, Report
from tailrace.spec import plugins
from tailrace.study.machine import Usage


def run(
    planned: Plan, backend: Backend, report: Report, *, label: str, pcap_dir: Path | None = None
) -> Result:
    """Run a plan to its end.

    Args:
        planned: the network, traffic and faults to run.
        backend: the simulator or the Mininet network that runs it.
        report: called with the progress.
        label: short name of the scheme.
        pcap_dir: folder for captures of every link; None: no captures.

    Raises:
        SpecError: the target does not support the experiment, or code of a plug-in (a metric, a NIC) failed.
        RunError: the run failed, or did not report the flows of the plan.
    """
    usage = Usage()
    # errors that a plug-in causes get its file and line
    with plugins.blamed(label, *_parts(planned)):
        outcome = backend.run(structs.replace(planned.job, pcap_dir=pcap_dir), report)
        if outcome.pfc is not None and outcome.pfc.storms:
            report(Progress("traffic", note=outcome.pfc.storm_note))
        return result_of(planned, outcome, label, usage.taken() if planned.target == "virtual" else {})


def _parts(planned: Plan) -> tuple[object, ...]:
    """The parts of a run that a plug-in may have defined."""
    parsed = planned.experiment.parsed
    traffic = () if parsed.workload is None else (parsed.workload.pattern,)
    return planned.job.scheme, *(fault.kind for fault in parsed.faults), *traffic
