"""Child processes that are watched, and faults that strike at a chosen step."""

import dis
import functools
import itertools
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

import pytest

import skdp

#: Seconds until a child that hangs is killed. No test depends on how fast anything is.
PATIENCE = 120.0

#: A process that may read nothing but what everybody may.
NOBODY = 65534

ROOT = Path(skdp.__file__).parents[1]
LEDGER_CODE = (str(ROOT / "skdp" / "accounting") + os.sep, str(ROOT / "skdp" / "release" / "session.py"))

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, signals and limits of resources are POSIX")


class Child:
    """A fork of this process that runs `work(say)`. What it says comes back, line by line."""

    def __init__(self, work):
        self.heard, writer = os.pipe()
        self.rest = b""
        self.ended = False
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                work(lambda *words: os.write(writer, (" ".join(map(str, words)) + "\n").encode()))
                code = 0
            except BaseException:
                os.write(writer, ("raised\n" + traceback.format_exc()).encode())
            finally:
                os._exit(code)
        os.close(writer)

    def listen(self, until=None, times=1):
        """Return the lines said until the child ends, or until it said `until` so many times."""
        deadline = time.monotonic() + PATIENCE
        while until is None or self.lines().count(until) < times:
            if not select.select([self.heard], [], [], max(0.0, deadline - time.monotonic()))[0]:
                self.kill()
                self.close()
                pytest.fail(f"a child hangs; it said {self.rest.decode()!r}")
            said = os.read(self.heard, 65536)
            if not said:
                break
            self.rest += said
        return self.lines()

    def lines(self):
        """What was heard so far, in whole lines: a child can be killed in the middle of one."""
        return self.rest.decode().split("\n")[:-1]

    def kill(self, how=signal.SIGKILL):
        os.kill(self.pid, how)

    def close(self):
        """Wait for the end, and return what killed the child, or minus its exit code."""
        if not self.ended:
            self.ended = True
            os.close(self.heard)
            _, self.status = os.waitpid(self.pid, 0)
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else -os.WEXITSTATUS(self.status)

    def said(self):
        """Return all lines, once the child has ended by itself and without an exception."""
        lines = self.listen()
        code = self.close()
        assert code == 0, "\n".join(lines)
        return lines


def in_child(work):
    """Run `work(say)` in a fork; an exception there is a failure here."""
    return Child(work).said()


def all_at_once(works):
    """Run each of `works` in a fork of its own, at the same moment, and return what each said."""
    gate, start = os.pipe()

    def waiting(work):
        def wait_and_work(say):
            os.close(start)
            say("ready")
            os.read(gate, 1)
            work(say)

        return wait_and_work

    children = [Child(waiting(work)) for work in works]
    for child in children:
        child.listen(until="ready")
    # The end of the pipe is what all of them wait for.
    os.close(start)
    os.close(gate)
    return [child.said()[1:] for child in children]


def environment(**others):
    """Variables of another interpreter, in which a warning is an error, and skdp the one that runs here."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    # Python 3.12 and later warn of any fork of a process that has threads, as NumPy's linear algebra does.
    filters = "error,ignore:This process:DeprecationWarning"
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": filters, **others}


def python_started(script, *arguments, temporary=None):
    """Start another interpreter."""
    variables = environment() if temporary is None else environment(TMPDIR=str(temporary))
    command = [sys.executable, "-c", script, *map(str, arguments)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=variables, text=True, **pipes)


def python(script, *arguments, temporary=None):
    """Run another interpreter to its end, and return what it printed."""
    process = python_started(script, *arguments, temporary=temporary)
    try:
        out, errors = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    assert process.returncode == 0, errors
    return out.split()


class Steps:
    """Follows the lines that run in the ledger's code, and the returns of functions; calls `strike` at one of them.

    Parameters
    ----------
    at : int
        Which step, from 1; 0 for none.
    strike : callable
        What happens there.
    """

    def __init__(self, at=0, strike=None):
        self.at, self.strike = at, strike
        self.places = []

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(LEDGER_CODE):
            return None
        if event in ("line", "return"):
            self.step(frame, event)
        return self

    def step(self, frame, event):
        self.places.append((Path(frame.f_code.co_filename).name, frame.f_code.co_name, frame.f_lineno, event))
        if len(self.places) == self.at:
            self.strike()

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)


class Calls(Steps):
    """The steps are the moments after each call: there, an interpreter looks whether it was interrupted.

    Between other instructions it does not look, and is not prepared: an exception at the start of a ``try``, or between
    a block and the exit of its ``with``, would be one that nobody can catch.
    """

    after = functools.lru_cache(maxsize=None)(lambda code: _after_calls(code))

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(LEDGER_CODE):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in Calls.after(frame.f_code):
            self.step(frame, event)
        return self


def _after_calls(code):
    """Offsets of the instructions that follow a call."""
    instructions = list(dis.get_instructions(code))
    return {b.offset for a, b in itertools.pairwise(instructions) if a.opname.startswith("CALL")}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def open_directory():
    """A directory in which a process without privileges can do what its owner can."""
    directory = Path(os.path.realpath(tempfile.mkdtemp(prefix="skdp-faults-")))
    if os.getuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    return directory


def remove(directory):
    for path in (directory, *directory.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(directory)


def without_privileges(work):
    """Run `work(say)` in a fork that obeys the modes of files, as root does not."""

    def dropped(say):
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        work(say)

    return in_child(dropped)
