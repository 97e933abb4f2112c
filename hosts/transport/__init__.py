# SPDX-License-Identifier: Apache-2.0
"""Reliable transports: what is sent, what is sent again, and what a receiver takes and answers."""

from __future__ import annotations

from hosts.transport.base import Receiver, Sender
from hosts.transport.go_back_n import GoBackNReceiver, GoBackNSender
from hosts.transport.selective_repeat import SelectiveRepeatReceiver, SelectiveRepeatSender

SENDERS: dict[str, type[Sender]] = {"gbn": GoBackNSender, "sr": SelectiveRepeatSender}
RECEIVERS: dict[str, type[Receiver]] = {"gbn": GoBackNReceiver, "sr": SelectiveRepeatReceiver}

__all__ = ["RECEIVERS", "SENDERS", "Receiver", "Sender"]
