# SPDX-License-Identifier: Apache-2.0
"""Where the flows of an experiment can be TCP connections of the hosts' own kernel, and where not."""

from __future__ import annotations

from tailrace.hosts.options.transport import Transport
from tailrace.schemes.base import SCHEMES
from tailrace.schemes.resolved import Resolved
from tailrace.words import SpecError


def kernel_tcp(transport: Transport, scheme: Resolved, target: str, *, pfc: bool) -> str | None:
    """The congestion control of the kernel's TCP; None: flows are those of NICs.

    Raises:
        SpecError: the kernel's TCP cannot do what else is asked for.
    """
    if not transport.kernel:
        return None
    able = [entry.name for entry in SCHEMES if entry.struct.kernel_tcp]
    reasons = {
        f"it is of real hosts; use the target native or bmv2, not {target}": target == "virtual",
        f"it runs over {' and '.join(able)}, not {scheme.name}": not scheme.kernel_tcp,
        "NICs stretch gaps, and its packets pass none": scheme.hf2t is not None,
        "it does not heed the pauses of PFC": pfc,
    }
    for reason, applies in reasons.items():
        if applies:
            raise SpecError(f"transport {transport.name}: {reason}")
    return transport.congestion
