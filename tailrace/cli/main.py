# SPDX-License-Identifier: Apache-2.0
"""Runs the command `tailrace`: errors become one line and an exit status.

Only the standard library is imported before `main` is entered: Ctrl-C gives one line also while the rest is
being imported.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from tailrace.cbuild.artifacts import ROOT
from tailrace.cli.errors import BAD_INPUT, DEBUG, DONE, FAILED, INTERRUPTED, PROGRAM, FailedError

_YOUNG_THRESHOLD = 100_000
"""Threshold of the youngest generation of Python's garbage collector: imports and large networks create many
objects and few cycles, and the default, 700, would cost a tenth of the time of a short run.
"""

_AGAIN_S = 0.005
"""Delay until a lost exception of a signal handler is raised again."""

_COMPLETING = "_ARGCOMPLETE"
"""The environment variable that a shell sets to ask for completion of the line in COMP_LINE."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command.

    Args:
        argv: arguments of the command line; None: those of the process.

    Returns:
        the exit status: 0 done, 1 failed, 2 bad input, 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP.
    """
    # otherwise gRPC itself logs unreachable servers
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    gc.set_threshold(_YOUNG_THRESHOLD)
    # else the collector looks through everything that was imported when the process ends, for 0.2 s
    atexit.register(gc.freeze)
    _make_streams()
    try:
        with _terminable(), _named_output():
            status = _guarded(sys.argv[1:] if argv is None else list(argv))
            sys.stdout.flush()
    except (KeyboardInterrupt, _TerminationSignal) as error:
        status = _fail("interrupted", error.status if isinstance(error, _TerminationSignal) else INTERRUPTED)
    except BrokenPipeError:
        # the reader of our output has closed the pipe
        status = FAILED
    except OSError as error:
        status = _fail(f"standard output: {error.strerror or error}", FAILED)
    _flush_finally(sys.stdout)
    _flush_finally(sys.stderr)
    return status


@contextlib.contextmanager
def _named_output() -> Iterator[None]:
    """Within the block, errors of writing to standard output name it, as errors of files name the file."""
    stream = sys.stdout
    before = stream.write, stream.flush

    def named(call: Callable[..., Any]) -> Callable[..., Any]:
        def write(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except OSError as error:
                if error.errno is None:
                    raise
                raise OSError(error.errno, error.strerror, "standard output") from error

        return write

    stream.write, stream.flush = map(named, before)  # type: ignore[method-assign]
    try:
        yield
    finally:
        stream.write, stream.flush = before  # type: ignore[method-assign]


class _TerminationSignal(BaseException):
    """SIGTERM or SIGHUP came; it is an exception so that blocks clean up."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.status = 128 + number


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Raises _TerminationSignal at the first SIGTERM or SIGHUP within the block; not outside the main thread,
    and not if SIGHUP is ignored, as under nohup.

    Python drops exceptions in some places, such as callbacks of weak references. An exception of a signal
    that was dropped there is raised again a moment later.
    """
    lost: list[BaseException] = []
    original_hook = sys.unraisablehook
    numbers = [signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)

    def end(number: int, _frame: FrameType | None) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise _TerminationSignal(number)

    def again(_signum: int, _frame: FrameType | None) -> None:
        if lost:
            raise lost.pop().with_traceback(None)

    def unraisable(about: sys.UnraisableHookArgs) -> None:
        if isinstance(about.exc_value, (KeyboardInterrupt, _TerminationSignal)):
            lost.append(about.exc_value)
            signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
        else:
            original_hook(about)

    try:
        before = {number: signal.signal(number, end) for number in numbers}
        before[signal.SIGALRM] = signal.signal(signal.SIGALRM, again)
    except ValueError:
        yield
        return
    sys.unraisablehook = unraisable
    try:
        yield
    finally:
        sys.unraisablehook = original_hook
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _guarded(arguments: list[str]) -> int:
    """The exit status of the command; an internal error becomes one line."""
    try:
        return _run(arguments)
    except (KeyboardInterrupt, _TerminationSignal, BrokenPipeError):
        raise
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else DONE if error.code is None else FAILED
    except MemoryError:
        return _fail("out of memory", FAILED)
    except OSError as error:
        if os.environ.get(DEBUG):
            raise
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{error.strerror or error}", FAILED)
    except BaseException as error:  # noqa: BLE001 - the last resort
        # panics of libraries written in Rust are not derived from Exception
        import traceback

        if os.environ.get(DEBUG):
            traceback.print_exc()
            return FAILED
        what = "".join(traceback.format_exception_only(type(error), error)).strip()
        return _fail(
            f"internal error: {what}{_place(error)}; {DEBUG}=1 or {PROGRAM} --debug shows where it came from",
            FAILED,
        )


def _run(arguments: list[str]) -> int:
    from tailrace.spec import Error, SpecError

    try:
        _call(arguments)
    except SpecError as error:
        if os.environ.get(DEBUG) and error.__cause__ is not None:
            import traceback

            traceback.print_exc()
        return _fail(str(error), BAD_INPUT)
    except Error as error:
        return _fail(str(error), FAILED)
    except FailedError as error:
        return _fail(str(error), error.status)
    except ImportError as error:
        if error.name is not None:
            raise
        # tailrace.hosts refuses an invalid TAILRACE_HOSTS in this way
        return _fail(str(error), BAD_INPUT)
    return DONE


def _call(arguments: list[str]) -> None:
    """Calls the command.

    Raises:
        SpecError: a plug-in caused an error; on one line with its file and line.
    """
    from tailrace.cli import app

    try:
        if _COMPLETING in os.environ:
            app.complete(os.environ.get("COMP_LINE", ""))
        app.run(arguments)
    except BaseException as error:
        # loading a plug-in imports this module; importing it here would double the time of --help
        plugins = sys.modules.get("tailrace.spec.plugins")
        cause = "" if plugins is None else plugins.blame(error)
        if not cause:
            raise
        from tailrace.spec import SpecError

        raise SpecError(f"plug-in {cause}") from error


def _place(error: BaseException) -> str:
    """File and line of the innermost frame of an error that is in our code."""
    import traceback

    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        if path.is_relative_to(ROOT) and "site-packages" not in path.parts:
            return f" at {path.relative_to(ROOT)}:{frame.lineno}"
    return ""


def _fail(message: str, status: int) -> int:
    """Prints an error, unless the message is empty; returns the status."""
    if message:
        from tailrace.spec.errors import MOST_CHARACTERS
        from tailrace.spec.text import one_line

        # standard error may be closed
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{PROGRAM}: {one_line(message, MOST_CHARACTERS)}\n")
            sys.stderr.flush()
    return status


def _make_streams() -> None:
    """Opens standard streams that are closed, and makes output and error accept every character."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # otherwise the next file that is opened would get this descriptor, and receive the output
            opened = os.open(os.devnull, os.O_RDONLY if descriptor == 0 else os.O_WRONLY)
            if opened != descriptor:
                os.dup2(opened, descriptor)
                os.close(opened)
            mode = "w" if descriptor else "r"
            setattr(sys, name, os.fdopen(descriptor, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _flush_finally(stream: object) -> None:
    """Flushes a stream; if that fails, drops the rest, so that Python's own flush at exit does not fail."""
    try:
        stream.flush()  # type: ignore[attr-defined]
    except (OSError, ValueError):
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())  # type: ignore[attr-defined]
            os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
