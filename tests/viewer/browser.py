# SPDX-License-Identifier: Apache-2.0
"""Headless Chromium, driven by the DevTools protocol over pipes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tests.papers.test_flowcut import BROWSERS

CHROMIUM = next(filter(None, map(shutil.which, BROWSERS)), None)
TO_BROWSER, FROM_BROWSER = 3, 4  # its descriptors


class Tab:
    """A tab: calls of the protocol, in order."""

    def __init__(self, write: int, read: IO[bytes]) -> None:
        self._write, self._read = write, read
        self._number, self._session = 0, ""
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def _message(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._read.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        message: dict[str, Any] = json.loads(data)
        return message

    def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        call = {"id": self._number, "method": method, "params": params}
        if self._session:
            call["sessionId"] = self._session
        os.write(self._write, json.dumps(call).encode() + b"\0")
        while (message := self._message()).get("id") != self._number:
            if message.get("method") == "Runtime.exceptionThrown":
                self.problems.append(json.dumps(message["params"]["exceptionDetails"]))
            if message.get("method") == "Log.entryAdded":
                self.problems.append(message["params"]["entry"]["text"])
        assert "error" not in message, message
        return message["result"]

    def evaluate(self, code: str) -> Any:
        """The value of an expression, or of its promise."""
        done = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def open(self, page: Path) -> None:
        """Opens a page of `tailrace view`, and waits until it is drawn."""
        self.call("Page.navigate", url=page.as_uri())
        ready = "document.documentElement?.dataset.ready === 'true'"
        self.evaluate(f"""new Promise((done, fail) => {{
            const wait = () => {ready} ? requestAnimationFrame(done) : setTimeout(wait, 20);
            setTimeout(() => fail("not ready: " + document.body.innerText.slice(0, 500)), 60000);
            wait();
        }}).then(() => true)""")

    def size(self, width: int, height: int, dark: bool = False) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def press(self, key: str, text: str = "") -> None:
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)


@contextmanager
def browser() -> Iterator[Tab]:
    """A tab of a browser that this block has started."""
    assert CHROMIUM is not None
    (child_read, write), (read, child_write) = os.pipe(), os.pipe()

    def connect() -> None:
        # copies above the target descriptors first, which may be among the pipes' own
        ends = [os.dup(os.dup(os.dup(child_read))), os.dup(os.dup(os.dup(child_write)))]
        os.dup2(ends[0], TO_BROWSER)
        os.dup2(ends[1], FROM_BROWSER)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")
        process = subprocess.Popen(
            [CHROMIUM, *options, f"--user-data-dir={profile}"],
            preexec_fn=connect,
            pass_fds=(TO_BROWSER, FROM_BROWSER),
            stderr=subprocess.DEVNULL,
        )
        os.close(child_read)
        os.close(child_write)
        try:
            with os.fdopen(read, "rb") as messages:
                tab = Tab(write, messages)
                yield tab
                tab.call("Browser.close")
        finally:
            os.close(write)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
