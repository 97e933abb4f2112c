# SPDX-License-Identifier: Apache-2.0
"""One session, message by message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from finsy.proto import p4r

from tailrace.controller import session as session_module
from tailrace.controller.reconcile import ReconcileReport
from tailrace.controller.session import Hooks, Session, SessionState
from tailrace.p4rt.channel import SwitchAddress
from tailrace.p4rt.status import Code
from tailrace.p4rt.target import target
from tailrace.schemes.intent import intent
from tests.controller.rig import PAIR, on, until


class Switch:
    """A client whose switch says what a test has it say, and holds another program."""

    def __init__(self) -> None:
        self.messages: asyncio.Queue[p4r.StreamMessageResponse] = asyncio.Queue()
        self.announced: list[int] = []

    def say(self, code: Code) -> None:
        """Who is primary: this client (OK) or another one."""
        message = p4r.StreamMessageResponse()
        message.arbitration.status.code = code
        self.messages.put_nowait(message)

    async def receive(self) -> p4r.StreamMessageResponse:
        return await self.messages.get()

    def announce(self, election_id: int) -> None:
        self.announced.append(election_id)

    async def cookie(self) -> None:
        return None


@pytest.mark.parametrize("again", [False, True])
def test_who_was_not_primary_meanwhile_looks_again(again: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a session has read counts only if nobody else could write before it is ready (seed 19716 of soak)."""
    begun: list[asyncio.Event] = []

    async def install(*_: Any) -> tuple[bool, ReconcileReport]:
        begun.append(asyncio.Event())
        await begun[-1].wait()
        return False, ReconcileReport()

    async def run() -> None:
        switch = Switch()

        @asynccontextmanager
        async def connect(*_: Any, **__: Any) -> AsyncIterator[Switch]:
            yield switch

        async def settled(_: Session) -> None:
            """No links."""

        def nothing(*_: object) -> None:
            """Nobody listens."""

        hooks = Hooks(
            state=nothing, packet=nothing, digest=nothing, links_discovered=settled, state_read=nothing
        )
        made = Session("leaf1", SwitchAddress("nowhere", 1), hooks, connect=connect)  # type: ignore[arg-type]
        made.set_intent(intent(PAIR, on(PAIR), target("native"))["leaf1"])
        task = asyncio.create_task(made.run())
        switch.say(Code.OK)
        await until(lambda: len(begun) == 1)
        if again:
            switch.say(Code.ALREADY_EXISTS)
            await until(lambda: made.state is SessionState.BACKUP)
            made.claim()
            first, claimed = switch.announced
            assert claimed > first, "a claim is a higher election id"
            switch.say(Code.OK)
            await until(lambda: made.state is SessionState.PRIMARY)
            begun[0].set()
            await until(lambda: len(begun) == 2)
            assert made.state is SessionState.PRIMARY
        begun[-1].set()
        await until(lambda: made.state is SessionState.READY)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    monkeypatch.setattr(session_module, "install", install)
    asyncio.run(run())
