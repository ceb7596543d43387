"""Faults of the durable ledger: kills, races, full and read-only disks, damaged files, clocks, interrupts.

In every test: what is recorded is never less than what was released, the total never exceeds the ceiling, nothing that
was acknowledged is lost, and a failure says which file it is about and releases nothing.
"""

import contextlib
import copy
import errno
import math
import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate

from skdp import BudgetAccountant, ObjPertLogReg
from skdp.accounting import Budget, PureEvent, _accountant, _sqlite, gaussian_mu
from skdp.accounting._record import Record, gate
from skdp.exceptions import BudgetError, LedgerError
from skdp.mechanisms import GammaMechanism, NoiseSource
from skdp.release.session import PrivacyGuarantee, Release, ReleaseSession, Theorem
from tests.accounting import faults_calls
from tests.accounting.costs import gaussian_cost, pure_cost
from tests.accounting.faults_harness import (
    PATIENCE,
    Calls,
    Child,
    Steps,
    all_at_once,
    die,
    environment,
    in_child,
    open_directory,
    posix,
    python,
    python_started,
    remove,
    without_privileges,
)

try:
    import resource
except ImportError:
    # Not POSIX: the tests that need it are skipped.
    resource = None

# Python 3.12 and later warn of any fork of a process that has threads, as NumPy's linear algebra does.
pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")

X = np.array([[0.3, 0.1], [-0.2, 0.4], [0.1, -0.5], [-0.4, -0.1]] * 6)
Y = np.array([0, 1, 1, 0] * 6)


def model(accountant, **parameters):
    return ObjPertLogReg(**{"epsilon": 0.1, "data_norm": 1.0, "classes": [0, 1], **parameters}, accountant=accountant)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


@pytest.fixture
def quick_path(tmp_path):
    """A path in memory, where there is such a disk: it is quick to synchronise, and a kill is no power failure."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path / "budget.db"
        return
    with tempfile.TemporaryDirectory(prefix="skdp-faults-", dir=memory) as made:
        yield Path(made, "budget.db")


@pytest.fixture
def released(monkeypatch):
    """What was released in this process: the labels of all streams of noise that were asked for."""
    labels = []
    stream = NoiseSource.stream

    def noted(self, label):
        labels.append(label)
        return stream(self, label)

    monkeypatch.setattr(NoiseSource, "stream", noted)
    return labels


@pytest.fixture
def directory():
    made = open_directory()
    yield made
    remove(made)


@contextlib.contextmanager
def refused(path, *words):
    """Expect a LedgerError that names the path and says these words."""
    with pytest.raises(LedgerError) as caught:
        yield
    message = str(caught.value)
    for word in (str(path), *words):
        assert word in message


def amounts(accountant):
    return [record.cost.epsilon for record in accountant.records]


def draft_files(directory):
    return [name for name in os.listdir(directory) if name.endswith((".new", "-journal", "-wal", "-shm"))]


def limit_files(size=None):
    """Let no write of this process go beyond an offset; None for no limit."""
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most if size is None else size, most))


# ---------------------------------------------------------------- killed at every step


def session(accountant, say):
    """Carry out the smallest plan; tell when noise is about to be drawn."""

    class Told(GammaMechanism):
        def release(self, value, stream):
            say("released")
            return super().release(value, stream)

    theorem = Theorem("Trees", 1)
    plan = PrivacyGuarantee(0.25, 0.0, (PureEvent(0.25),), (Release("a", Told(0.25, 1.0, 2), 1.0, theorem),))
    opened = ReleaseSession(plan, accountant=accountant, source=NoiseSource(), estimator="Test")
    opened.release("a", np.zeros(2))


def fit(accountant, say):
    stream = NoiseSource.stream

    def told(self, label):
        say("released")
        return stream(self, label)

    # In a child: nothing has to be undone.
    NoiseSource.stream = told
    model(accountant, epsilon=0.25).fit(X, Y)


def charge_late(accountant, say):
    """The broken twin: check first, charge after the release."""
    accountant.check(0.25)
    say("released")
    accountant.spend(0.25)


def charge_early(accountant, say):
    """Another one: the release is in the transaction, before the commit."""
    record = Record("", pure_cost(0.25), "", (), datetime.now(UTC))
    admit = accountant._rule.admit
    accountant._store.change(lambda state: (admit(state, record.cost), say("released"))[0], record)


def kill_at(step, work, path):
    """Kill a child before the given step of its work; return its steps, and whether it had released."""

    def run(say):
        accountant = BudgetAccountant.from_ledger(path)
        with Steps(step, die) as steps:
            work(accountant, say)
        for place in steps.places:
            say(*place)

    child = Child(run)
    said = child.listen()
    assert child.close() == (signal.SIGKILL if step else 0), said
    return [line for line in said if line != "released"], "released" in said


#: In so many tests all steps are tried.
N_PARTS = 16


def every_step(places):
    return range(1, len(places) + 1)


def every_line(places):
    """The first time that each line runs."""
    return sorted({place: step for step, place in reversed(list(enumerate(places, start=1)))}.values())


def outcomes(work, path, steps):
    """Yield what was released and recorded, for a kill before each step."""
    BudgetAccountant(1.0, ledger=path)
    new = path.read_bytes()
    places, _ = kill_at(0, work, path)
    assert len(places) > 100
    for step in steps(places):
        path.write_bytes(new)
        _, was_released = kill_at(step, work, path)
        # The same ceiling: opened, not made anew. Opening verifies all records.
        accountant = BudgetAccountant(1.0, ledger=path)
        recorded = len(accountant)
        assert accountant.total().epsilon == 0.25 * recorded
        yield was_released, recorded
        # What is left can be spent, and no more.
        accountant.spend(1.0 - 0.25 * recorded)
        with pytest.raises(BudgetError):
            accountant.spend(0.01)


@posix
@pytest.mark.parametrize("part", range(N_PARTS))
@pytest.mark.sample(every=2)
def test_a_release_is_recorded_wherever_the_process_is_killed(part, quick_path):
    def some_steps(places):
        # The last step alone is after the release for sure.
        return [*every_step(places)[part::N_PARTS], len(places)]

    assert set(outcomes(session, quick_path, some_steps)) == {(False, 0), (False, 1), (True, 1)}


@posix
@pytest.mark.sample(every=5)
def test_a_fit_is_recorded_wherever_it_is_killed(quick_path):
    def some_lines(places):
        # The last steps are the return from each release.
        return sorted({*every_line(places)[::2], *every_step(places)[-4:]})

    assert set(outcomes(fit, quick_path, some_lines)) == {(False, 0), (False, 1), (True, 1)}


@posix
@pytest.mark.parametrize("twin", [charge_late, charge_early])
@pytest.mark.sample(every=4)
def test_kills_find_a_release_without_a_record(twin, quick_path):
    assert (True, 0) in outcomes(twin, quick_path, lambda places: every_line(places)[::4])


@posix
@pytest.mark.sample(every=4)
def test_a_ledger_is_whole_or_not_there_wherever_its_maker_is_killed(quick_path):
    def make(path, step=0):
        def run(say):
            with Steps(step, die) as steps:
                BudgetAccountant(1.0, ledger=path)
                say("acknowledged")
            for place in steps.places:
                say(*place)

        child = Child(run)
        said = child.listen()
        assert child.close() == (signal.SIGKILL if step else 0), said
        return said

    there = set()
    for step in every_line([line for line in make(quick_path) if line != "acknowledged"])[::2]:
        # A name of its own: what was a ledger earlier in this process is not made anew.
        path = quick_path.with_name(f"{step}.db")
        acknowledged = "acknowledged" in make(path, step)
        there.add(path.exists())
        assert path.exists() >= acknowledged
        if path.exists():
            assert len(BudgetAccountant.from_ledger(path)) == 0
        BudgetAccountant(1.0, ledger=path).spend(1.0)
    assert there == {False, True}


# ---------------------------------------------------------------- killed at any moment


def kill_spenders(path, work, kills):
    """Kill children that spend in a loop; return what they had acknowledged, what is recorded, and the kills."""
    chance = random.Random(20240)
    acknowledged = 0
    for number in range(1, kills + 1):
        child = Child(lambda say: work(BudgetAccountant.from_ledger(path), say))
        child.listen(until="spent")
        time.sleep(chance.uniform(0.0, 0.03))
        child.kill()
        acknowledged += child.listen().count("spent")
        assert child.close() == signal.SIGKILL
        accountant = BudgetAccountant(1000.0, ledger=path)
        recorded = len(accountant)
        assert accountant.total().epsilon == pytest.approx(recorded / 1000)
        assert [record.label for record in accountant.records] == ["loop"] * recorded
        yield acknowledged, recorded, number


@posix
def test_no_acknowledged_charge_is_lost_to_a_kill(path):
    def work(accountant, say):
        while True:
            accountant.spend(0.001, label="loop")
            say("spent")

    BudgetAccountant(1000.0, ledger=path)
    for acknowledged, recorded, kills in kill_spenders(path, work, kills=20):
        assert acknowledged <= recorded <= acknowledged + kills
    assert acknowledged >= 20


@posix
def test_kills_find_charges_that_are_acknowledged_early(path):
    def twin(accountant, say):
        while True:
            say("spent")
            accountant.spend(0.001, label="loop")

    BudgetAccountant(1000.0, ledger=path)
    assert any(acknowledged > recorded for acknowledged, recorded, _ in kill_spenders(path, twin, kills=40))


def strace_works():
    if shutil.which("strace") is None:
        return False
    command = ["strace", "-f", "-o", os.devnull, "-e", "trace=fsync", "-e", "inject=fsync:signal=KILL:when=64"]
    with contextlib.suppress(subprocess.TimeoutExpired):
        return subprocess.run([*command, "true"], capture_output=True, timeout=PATIENCE).returncode == 0
    return False


@pytest.fixture(scope="module")
def strace():
    if not strace_works():
        pytest.skip("there is no strace, or it may not trace: system calls cannot be made to fail")


@posix
@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("pwrite64", "signal=KILL"),
        ("fdatasync", "signal=KILL"),
        ("unlink", "signal=KILL"),
        ("pwrite64", "error=ENOSPC"),
        ("fdatasync", "error=EIO"),
        ("unlink", "error=EIO"),
    ],
)
@pytest.mark.sample(every=4)
def test_a_charge_survives_faults_of_system_calls(call, fault, tmp_path, strace):
    command = ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
    command += ["-e", f"inject={call}:{fault}:when={faults_calls.LAST}"]
    script = Path(faults_calls.__file__)
    ran = subprocess.run(
        [*command, sys.executable, script, call, tmp_path],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    struck = -signal.SIGKILL if fault == "signal=KILL" else faults_calls.REFUSED
    codes = [int(word) for word in ran.stdout.split()]
    assert set(codes) == {struck, faults_calls.ACKNOWLEDGED}
    for number, code in enumerate(codes, start=1):
        accountant = BudgetAccountant(1.0, ledger=tmp_path / f"{number}.db")
        recorded = [record.label for record in accountant.records]
        assert recorded in (["before", "before"], ["before", "before", "charged"])
        assert len(recorded) == 3 or code == struck
        accountant.spend(0.25)


# ---------------------------------------------------------------- a journal that a crash left


def long_ledger(path, records=40):
    """A ledger of many pages: a charge changes the first and the last of them."""
    accountant = BudgetAccountant(1000.0, ledger=path)
    for number in range(records):
        accountant.spend(0.001, label=f"{number} {'x' * 500}")
    return accountant


def crash_in_the_commit(path):
    """Kill a process when it has written some pages of a charge, and a journal that undoes them."""

    def work(say):
        accountant = BudgetAccountant.from_ledger(path)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # The write beyond this offset is fatal.
        limit_files(path.stat().st_size - 4096)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        say("spends")
        accountant.spend(0.001, label="lost")
        say("acknowledged")

    child = Child(work)
    assert child.listen() == ["spends"]
    assert child.close() == signal.SIGXFSZ


def journal_of(path):
    return path.with_name(f"{path.name}-journal")


@posix
def test_a_hot_journal_is_rolled_back(path):
    live = long_ledger(path)
    before = path.read_bytes()
    crash_in_the_commit(path)
    assert journal_of(path).stat().st_size > 4096
    assert path.read_bytes() != before
    accountant = BudgetAccountant(1000.0, ledger=path)
    assert path.read_bytes() == before
    assert not journal_of(path).exists()
    for opened in (accountant, live):
        assert len(opened) == len(opened.records) == 40
        assert opened.total() == Budget(0.04, 0.0)


@posix
def test_a_live_accountant_rolls_a_hot_journal_back(path):
    live = long_ledger(path)
    crash_in_the_commit(path)
    live.spend(0.001, label="after")
    assert [record.label.split()[0] for record in live.records] == [*map(str, range(40)), "after"]


@posix
def test_without_its_journal_the_file_would_be_damaged(path):
    live = long_ledger(path)
    crash_in_the_commit(path)
    journal_of(path).unlink()
    with refused(path, "damaged"):
        BudgetAccountant(1000.0, ledger=path)
    with refused(path, "damaged"):
        _ = live.records


@posix
def test_file_and_journal_that_were_moved_together_are_moved_back_first(path, tmp_path):
    long_ledger(path)
    crash_in_the_commit(path)
    moved = tmp_path / "moved" / "budget.db"
    moved.parent.mkdir()
    for file in (path, journal_of(path)):
        shutil.move(file, moved.parent)
    for use in (
        lambda: BudgetAccountant(1000.0, ledger=moved),
        lambda: BudgetAccountant.from_ledger(moved),
        lambda: BudgetAccountant.from_ledger(moved, moved=True),
    ):
        with refused(moved, "move both back", str(path)):
            use()
    for file in (moved, journal_of(moved)):
        shutil.move(file, path.parent)
    assert len(BudgetAccountant.from_ledger(path).records) == 40
    os.rename(path, moved)
    accountant = BudgetAccountant.from_ledger(moved, moved=True)
    accountant.spend(0.001)
    assert len(accountant.records) == 41


@pytest.mark.parametrize("rubbish", [b"", b"x" * 3000, bytes(3000), b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(3000)])
def test_a_journal_that_is_none_changes_nothing(rubbish, path):
    long_ledger(path)
    journal_of(path).write_bytes(rubbish)
    accountant = BudgetAccountant(1000.0, ledger=path)
    assert len(accountant.records) == 40
    accountant.spend(0.001)
    assert len(BudgetAccountant.from_ledger(path).records) == 41


# ---------------------------------------------------------------- one file, two names


def crash_before_the_journal_goes(path):
    """Kill a process when all pages of a charge are written, and the journal that undoes it is still there."""
    journal, kept = journal_of(path), path.with_name("kept")

    class Keeping(sqlite3.Connection):
        def execute(self, statement, *arguments):
            if statement == "COMMIT":
                os.link(journal, kept)
            return super().execute(statement, *arguments)

    def work(say):
        accountant = BudgetAccountant.from_ledger(path)
        # The journal is complete when the commit has ended; what the unlink took away is put back.
        connect = sqlite3.connect
        _sqlite.sqlite3.connect = lambda *a, **k: connect(*a, factory=Keeping, **k)
        accountant.spend(0.25, label="interrupted")

    assert in_child(work) == []
    assert not journal.exists()
    os.rename(kept, journal)


def test_the_crash_leaves_a_journal_that_undoes_a_charge(path):
    # So that the tests below are about what happens.
    BudgetAccountant(1.0, ledger=path)
    crash_before_the_journal_goes(path)
    assert amounts(BudgetAccountant.from_ledger(path)) == []


@posix
def test_a_second_name_refunds_nothing(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    crash_before_the_journal_goes(path)
    other = path.with_name("other.db")
    os.link(path, other)
    for name in (path, other):
        for use in (
            lambda name=name: BudgetAccountant(1.0, ledger=name),
            lambda name=name: BudgetAccountant.from_ledger(name),
            lambda name=name: BudgetAccountant.from_ledger(name, moved=True),
        ):
            with refused(name, "hard link"):
                use()
    assert_refused(accountant, path, released, "hard link")
    assert journal_of(path).exists()
    # The journal's name goes; a charge under the other one would be undone if the file got its old name back.
    path.unlink()
    with refused(other, str(path), "belongs to"):
        BudgetAccountant(1.0, ledger=other)
    with refused(other, str(journal_of(path))):
        BudgetAccountant.from_ledger(other, moved=True)
    with refused(other, "belongs to"):
        BudgetAccountant.from_ledger(other).spend(0.25)
    os.rename(other, path)
    assert amounts(accountant) == []
    accountant.spend(1.0)


@posix
def test_a_link_that_is_made_later_is_noticed_at_the_next_charge(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.25)
    other = path.with_name("other.db")
    os.link(path, other)
    assert_refused(accountant, path, released, "hard link")
    other.unlink()
    accountant.spend(0.75)


@posix
def test_a_journal_of_an_earlier_life_undoes_nothing(path, tmp_path):
    # The old place cannot be seen when the ledger is said to have moved, as where a disk is not mounted.
    BudgetAccountant(1.0, ledger=path)
    crash_before_the_journal_goes(path)
    hidden, other = tmp_path / "hidden", tmp_path / "other.db"
    os.rename(journal_of(path), hidden)
    os.rename(path, other)
    BudgetAccountant.from_ledger(other, moved=True).spend(0.5)
    os.rename(other, path)
    os.rename(hidden, journal_of(path))
    for use in (
        lambda: BudgetAccountant(1.0, ledger=path),
        lambda: BudgetAccountant.from_ledger(path),
        lambda: BudgetAccountant.from_ledger(path, moved=True),
    ):
        with refused(path, "journal", str(other)):
            use()
    journal_of(path).unlink()
    assert amounts(BudgetAccountant.from_ledger(path, moved=True)) == [0.25, 0.5]


def test_a_moved_ledger_is_charged_once_that_is_said(path, tmp_path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.25)
    other = tmp_path / "elsewhere" / "other.db"
    other.parent.mkdir()
    os.rename(path, other)
    assert_refused(accountant, path, released, "exists no longer")
    with refused(other, str(path), "--moved", "moved=True"):
        BudgetAccountant(1.0, ledger=other)
    # Reading is no charge.
    reader = BudgetAccountant.from_ledger(other)
    assert amounts(reader) == [0.25]
    with refused(other, str(path)):
        reader.spend(0.25)
    BudgetAccountant.from_ledger(other, moved=True).spend(0.25)
    reader.spend(0.25)
    BudgetAccountant(1.0, ledger=other).spend(0.25)
    assert amounts(BudgetAccountant.from_ledger(other, moved=True)) == [0.25] * 4
    # And back.
    os.rename(other, path)
    with refused(path, str(other)):
        BudgetAccountant(1.0, ledger=path)
    assert len(BudgetAccountant.from_ledger(path, moved=True)) == 4
    assert len(accountant) == 4


def test_a_copy_is_read_and_not_charged(path):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.25)
    copied = path.with_name("copy.db")
    shutil.copy(path, copied)
    reader = BudgetAccountant.from_ledger(copied)
    assert amounts(reader) == [0.25]
    with refused(copied, str(path)):
        reader.spend(0.25)
    with refused(copied, "still exists"):
        BudgetAccountant.from_ledger(copied, moved=True)
    accountant.spend(0.75)
    # The original is lost, or another ledger is there.
    path.unlink()
    BudgetAccountant.from_ledger(copied, moved=True).spend(0.25)


def test_a_copy_of_what_another_ledger_has_replaced_is_no_copy(path):
    BudgetAccountant(1.0, ledger=path).spend(0.25)
    copied, other = path.with_name("copy.db"), path.with_name("other.db")
    shutil.copy(path, copied)
    BudgetAccountant(1.0, ledger=other)
    os.replace(other, path)
    assert len(BudgetAccountant.from_ledger(copied, moved=True)) == 1


def test_a_directory_that_is_renamed_takes_its_ledgers_along(tmp_path):
    # As one that is mounted at two places: the journal is in it, whatever it is called.
    (tmp_path / "one").mkdir()
    BudgetAccountant(1.0, ledger=tmp_path / "one" / "budget.db").spend(0.25)
    os.rename(tmp_path / "one", tmp_path / "two")
    BudgetAccountant(1.0, ledger=tmp_path / "two" / "budget.db").spend(0.25)
    # A directory that was restored has another number, and the old path.
    shutil.copytree(tmp_path / "two", tmp_path / "one")
    BudgetAccountant(1.0, ledger=tmp_path / "one" / "budget.db").spend(0.25)


@posix
def test_a_ledger_whose_maker_was_killed_between_its_two_names(path):
    accountant = BudgetAccountant(1.0, ledger=path)
    draft = path.with_name(".ledger.abc.new")
    os.link(path, draft)
    accountant.spend(0.25)
    assert os.listdir(path.parent) == [path.name]


@posix
def test_a_kill_leaves_a_moved_ledger_at_its_old_or_its_new_place(quick_path):
    other = quick_path.with_name("other.db")

    def settle(step=0):
        def run(say):
            with Steps(step, die) as steps:
                BudgetAccountant.from_ledger(other, moved=True)
                say("acknowledged")
            for place in steps.places:
                say(*place)

        child = Child(run)
        said = child.listen()
        assert child.close() == (signal.SIGKILL if step else 0), said
        return said

    BudgetAccountant(1.0, ledger=quick_path).spend(0.25)
    os.rename(quick_path, other)
    new = other.read_bytes()
    places = [line for line in settle() if line != "acknowledged"]
    settled = set()
    for step in every_line(places)[::6]:
        other.write_bytes(new)
        acknowledged = "acknowledged" in settle(step)
        settled.add(BudgetAccountant.from_ledger(other)._elsewhere() is None)
        assert BudgetAccountant.from_ledger(other)._elsewhere() is None or not acknowledged
        BudgetAccountant.from_ledger(other, moved=True).spend(0.75)
    assert settled == {False, True}


# ---------------------------------------------------------------- processes race


def spend_until_refused(accountant, charge, say, tries):
    """Charge as often as told, and say how each charge ended."""
    for _ in range(tries):
        try:
            charge(accountant)
        except BudgetError:
            say("refused")
        else:
            say("admitted")


CHARGES = {
    "basic": lambda accountant: accountant.spend(0.05),
    "gdp": lambda accountant: accountant.charge(gaussian_cost(gaussian_mu(1.0, 1e-5) / math.sqrt(20) * (1 - 1e-12))),
}


@posix
@pytest.mark.parametrize("processes", [2, 8])
@pytest.mark.parametrize("composition", ["basic", "gdp"])
def test_processes_race_for_the_last_budget(processes, composition, path):
    ceiling = (1.0, 1e-5 if composition == "gdp" else 0.0)
    charge = CHARGES[composition]

    def work(say):
        # The constructors race as well: one makes the file, the others open it.
        accountant = BudgetAccountant(*ceiling, ledger=path, composition=composition)
        spend_until_refused(accountant, charge, say, tries=21)

    told = [word for said in all_at_once([work] * processes) for word in said]
    assert set(told) == {"admitted", "refused"}
    assert told.count("admitted") == 20
    assert told.count("refused") == 21 * processes - 20
    accountant = BudgetAccountant(*ceiling, ledger=path, composition=composition)
    assert len(accountant) == len(accountant.records) == 20
    assert accountant.total().epsilon <= 1.0
    assert draft_files(path.parent) == []
    with pytest.raises(BudgetError):
        charge(accountant)


RACER = """
import sys
import tempfile
from skdp import BudgetAccountant
from skdp.exceptions import BudgetError
print("ready", flush=True)
sys.stdin.readline()
accountant = BudgetAccountant(1.0, ledger=sys.argv[1])
for _ in range(21):
    try:
        accountant.spend(0.05)
    except BudgetError:
        print("refused")
    else:
        print("admitted")
"""


@pytest.mark.sample(every=4)
def test_interpreters_race_for_the_last_budget(path):
    racers = [python_started(RACER, path) for _ in range(3)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    told = [racer.communicate(timeout=PATIENCE) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * 3, told
    assert sum(out.split().count("admitted") for out, _ in told) == 20
    assert amounts(BudgetAccountant.from_ledger(path)) == [0.05] * 20


@posix
def test_the_race_has_teeth(path):
    # The broken twin: check on one ledger, charge on another that has no ceiling.
    unchecked = path.with_name("unchecked.db")
    BudgetAccountant(1.0, ledger=path)
    BudgetAccountant(math.inf, ledger=unchecked)
    gate, start = os.pipe()

    def work(say):
        os.close(start)
        BudgetAccountant.from_ledger(path).check(0.3)
        say("checked")
        os.read(gate, 1)
        BudgetAccountant.from_ledger(unchecked).spend(0.3)

    children = [Child(work) for _ in range(4)]
    for child in children:
        child.listen(until="checked")
    os.close(start)
    os.close(gate)
    for child in children:
        child.said()
    assert BudgetAccountant.from_ledger(unchecked).total().epsilon > 1.0


# ---------------------------------------------------------------- other descriptors of the file

# SQLite's locks are those of POSIX: a process that closes any descriptor of the file loses all of them.


def charge_while_another_process_has_no_lock(path, second):
    """Charge, and in the middle of the transaction read the file, and wait until a second process charged or waits."""
    BudgetAccountant(1.0, ledger=path)

    def first(say):
        accountant = BudgetAccountant.from_ledger(path)
        admit = accountant._rule.admit

        def step(state):
            path.read_bytes()
            say("in the transaction")
            os.read(gone_on, 1)
            return admit(state, pure_cost(0.25))

        accountant._store.change(step, Record("first", pure_cost(0.25), "", (), datetime.now(UTC)))

    def tell(*ignored):
        with contextlib.suppress(BrokenPipeError):
            os.write(go_on, b"x")

    gone_on, go_on = os.pipe()
    reader = Child(first)
    reader.listen(until="in the transaction")
    os.close(gone_on)
    try:
        second(tell)
    finally:
        tell()
        reader.said()
        os.close(go_on)
    assert sorted(record.label for record in BudgetAccountant.from_ledger(path).records) == ["first", "second"]


@posix
def test_a_fork_does_not_enter_the_transaction_of_a_process_that_reads_the_file(path, monkeypatch):
    def second(tell):
        monkeypatch.setattr(time, "sleep", tell)
        BudgetAccountant.from_ledger(path).spend(0.25, label="second")

    charge_while_another_process_has_no_lock(path, second)


SECOND = """
import sys, time
from skdp import BudgetAccountant
pause = time.sleep
time.sleep = lambda seconds: (print("waits", flush=True), pause(seconds))
BudgetAccountant.from_ledger(sys.argv[1]).spend(0.25, label="second")
print("charged", flush=True)
"""


@posix
def test_an_interpreter_does_not_enter_the_transaction_of_a_process_that_reads_the_file(path):
    racers = []

    def second(tell):
        racers.append(python_started(SECOND, path))
        assert racers[0].stdout.readline() in ("waits\n", "charged\n")

    charge_while_another_process_has_no_lock(path, second)
    _, errors = racers[0].communicate(timeout=PATIENCE)
    assert racers[0].returncode == 0, errors


@posix
@pytest.mark.sample(every=3)
def test_processes_charge_while_threads_copy_the_file(quick_path):
    def work(say):
        accountant = BudgetAccountant.from_ledger(quick_path)
        stop = threading.Event()

        def copy_it():
            while not stop.is_set():
                quick_path.read_bytes()

        threads = [threading.Thread(target=copy_it) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(12):
            accountant.spend(0.01)
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)

    BudgetAccountant(1.0, ledger=quick_path)
    all_at_once([work] * 4)
    assert amounts(BudgetAccountant.from_ledger(quick_path)) == [0.01] * 48


@posix
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EBADF])
def test_a_file_system_without_flock_is_refused(code, path, released, monkeypatch):
    live = BudgetAccountant(1.0, ledger=path)
    flock = _sqlite.fcntl.flock

    def fails(handle, operation):
        if operation != _sqlite.fcntl.LOCK_UN:
            raise OSError(code, os.strerror(code))

    monkeypatch.setattr(_sqlite.fcntl, "flock", fails)
    for use in (
        lambda: live.spend(0.25),
        lambda: model(live).fit(X, Y),
        lambda: BudgetAccountant(1.0, ledger=path),
        lambda: BudgetAccountant.from_ledger(path),
        lambda: BudgetAccountant(1.0, ledger=path.with_name("other.db")),
    ):
        with refused(path.parent, "flock", os.strerror(code), "local disk"):
            use()
    assert not released
    assert os.listdir(path.parent) == [path.name]
    monkeypatch.setattr(_sqlite.fcntl, "flock", flock)
    live.spend(1.0)


@posix
def test_a_directory_that_stays_locked_is_refused_in_the_end(path, released, monkeypatch):
    monkeypatch.setattr(_sqlite, "_PATIENCE", 0.05)
    live = BudgetAccountant(1.0, ledger=path)
    handle = os.open(path.parent, os.O_RDONLY)
    _sqlite.fcntl.flock(handle, _sqlite.fcntl.LOCK_EX)
    try:
        assert_refused(live, path, released, "in use by another process")
    finally:
        os.close(handle)
    live.spend(1.0)


# ---------------------------------------------------------------- threads


def in_threads(works):
    """Run all at once, in threads that are switched as often as can be; return what each returned or raised."""
    results = [None] * len(works)
    barrier = threading.Barrier(len(works))

    def run(number):
        barrier.wait()
        try:
            results[number] = works[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(works))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        sys.setswitchinterval(interval)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    return results


def admitted(accountant, charge, tries):
    won = 0
    for _ in range(tries):
        with contextlib.suppress(BudgetError):
            charge(accountant)
            won += 1
    return won


@pytest.mark.parametrize("composition", ["basic", "gdp"])
@pytest.mark.parametrize("own", [False, True], ids=["one accountant", "one each"])
def test_threads_never_exceed_the_ceiling(composition, own, path):
    ceiling = (1.0, 1e-5 if composition == "gdp" else 0.0)
    shared = BudgetAccountant(*ceiling, ledger=path, composition=composition)
    accountants = [BudgetAccountant.from_ledger(path) if own else shared for _ in range(16)]
    works = [lambda a=accountant: admitted(a, CHARGES[composition], 4) for accountant in accountants]
    assert sum(in_threads(works)) == 20
    assert len(shared) == len(shared.records) == 20
    assert shared.total().epsilon <= 1.0


def test_threads_fit_as_many_models_as_the_budget_admits(path, released):
    accountant = BudgetAccountant(0.1, ledger=path)
    models = [model(accountant) for _ in range(16)]
    results = in_threads([lambda m=m: m.fit(X, Y) for m in models])
    assert sum(hasattr(m, "coef_") for m in models) == 1
    assert sum(isinstance(result, BudgetError) for result in results) == 15
    assert len(accountant) == 1
    # One fit has one stream for each of its releases.
    assert len(released) == len(accountant.records[0].releases)


def test_threads_that_only_check_exceed_the_ceiling(path):
    # The broken twin.
    accountant = BudgetAccountant(1.0, ledger=path)
    unchecked = BudgetAccountant(math.inf, ledger=path.with_name("unchecked.db"))
    barrier = threading.Barrier(16)

    def twin():
        accountant.check(0.5)
        barrier.wait()
        unchecked.spend(0.5)

    assert in_threads([twin] * 16) == [None] * 16
    assert unchecked.total().epsilon > accountant.epsilon


def test_threads_charge_while_others_pickle():
    accountant = BudgetAccountant(1.0)
    sent = []
    spenders = [lambda: admitted(accountant, CHARGES["basic"], 4)] * 8
    picklers = [lambda: sent.append(pickle.dumps(accountant))] * 8
    won = in_threads([*spenders, *picklers])[:8]
    assert sum(won) == 20
    assert len(accountant) == 20
    for copied in sent:
        again = pickle.loads(copied)
        assert amounts(again) == [0.05] * 20
        with pytest.raises(BudgetError):
            again.spend(0.05)


# ---------------------------------------------------------------- forks


@posix
def test_what_forked_children_spend_is_seen_by_the_parent(path):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.1, label="parent")
    works = [lambda say, n=n: (accountant.spend(0.1, label=f"child {n}"), say(len(accountant) > 1)) for n in range(3)]
    assert all_at_once(works) == [["True"]] * 3
    assert sorted(record.label for record in accountant.records) == ["child 0", "child 1", "child 2", "parent"]
    assert accountant.total() == Budget(0.4, 0.0)
    accountant.spend(0.6)
    with pytest.raises(BudgetError):
        in_child_raises(lambda: accountant.spend(0.01))


def in_child_raises(work):
    """Run `work` in a fork, and raise here the exception that it raised there."""
    ends = os.pipe()

    def run(say):
        try:
            work()
        except Exception as error:
            os.write(ends[1], pickle.dumps(error))

    in_child(run)
    os.close(ends[1])
    sent = b"".join(iter(lambda: os.read(ends[0], 65536), b""))
    os.close(ends[0])
    if sent:
        raise pickle.loads(sent)


@posix
def test_a_fork_while_other_threads_spend(path):
    accountant = BudgetAccountant(2.0, ledger=path)
    stop = threading.Event()
    spent = []

    def spend():
        while not stop.is_set():
            try:
                accountant.spend(0.01)
            except BudgetError:
                return
            spent.append(1)

    threads = [threading.Thread(target=spend, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        children = []
        for _ in range(8):
            children.append(Child(lambda say: spend_until_refused(accountant, CHARGES["basic"], say, tries=2)))
            time.sleep(0.005)
        told = [word for child in children for word in child.said()]
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert sorted(amounts(accountant)) == [0.01] * len(spent) + [0.05] * told.count("admitted")
    assert len(told) == 16
    assert spent
    assert told.count("admitted") > 0
    assert accountant.total().epsilon <= 2.0


def free_in_a_fork(lock, released):
    """Whether a lock that another thread holds is free in a child that is forked in the meantime."""
    held = threading.Event()

    def hold():
        with lock:
            held.set()
            released.wait(PATIENCE)

    thread = threading.Thread(target=hold, daemon=True)
    thread.start()
    held.wait(PATIENCE)
    (free,) = in_child(lambda say: say(lock.acquire(blocking=False)))
    released.set()
    thread.join(PATIENCE)
    return free == "True"


@posix
def test_a_fork_waits_for_a_charge():
    released = threading.Event()
    timer = threading.Timer(0.1, released.set)
    timer.start()
    assert free_in_a_fork(gate, released)
    timer.join(PATIENCE)
    # The broken twin: a lock that forks know nothing of.
    assert not free_in_a_fork(threading.RLock(), threading.Event())


@posix
def test_memory_is_not_charged_in_a_fork():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.25, label="parent")
    for attempt in (
        lambda: accountant.spend(0.25),
        lambda: model(accountant).fit(X, Y),
        lambda: pickle.dumps(accountant),
    ):
        with pytest.raises(BudgetError, match="memory of another process"):
            in_child_raises(attempt)
    assert [record.label for record in accountant.records] == ["parent"]
    accountant.spend(0.75)


@posix
def test_memory_that_was_moved_to_a_file_is_charged_in_forks():
    accountant = BudgetAccountant(1.0)
    accountant.spend(0.1)
    sent = pickle.dumps(accountant)
    all_at_once([lambda say: accountant.spend(0.1), lambda say: pickle.loads(sent).spend(0.1)])
    assert amounts(accountant) == [0.1] * 3
    accountant.spend(0.7)
    with pytest.raises(BudgetError):
        in_child_raises(lambda: pickle.loads(sent).spend(0.01))


OWNER = """
import os, pickle, sys
from skdp import BudgetAccountant
accountant = BudgetAccountant(1.0)
accountant.spend(0.25)
pickle.dumps(accountant)
path = accountant._store._successor.path
child = os.fork()
if child == 0:
    accountant.spend(0.25)
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
accountant.spend(0.25)
assert len(accountant) == 3
print(path, path.exists())
"""


@posix
def test_a_temporary_ledger_goes_with_its_owner_and_not_with_a_fork(tmp_path):
    path, there = python(OWNER, temporary=tmp_path)
    assert there == "True"
    assert path.startswith(str(tmp_path))
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- full disks


@posix
def test_a_full_disk_refuses_and_loses_nothing(path, released):
    accountant = long_ledger(path)
    size = path.stat().st_size
    limits = [*range(0, size + 16384, 1024), *(4096 * k + d for k in range(1, 8) for d in (-1, 1))]

    def work(say):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        child = BudgetAccountant.from_ledger(path)
        recorded = len(child)
        for limit in limits:
            limit_files(limit)
            estimator = model(child, epsilon=0.001)
            released.clear()
            try:
                estimator.fit(X, Y)
            except LedgerError as error:
                refusal = str(error)
                assert not released
                assert not hasattr(estimator, "coef_")
            else:
                refusal = None
                recorded += 1
            assert refusal is None or str(path) in refusal
            say("fitted" if refusal is None else "refused")
            limit_files()
            assert len(child) == len(child.records) == recorded

    told = in_child(work)
    assert told[0] == "refused"
    assert set(told) == {"refused", "fitted"}
    assert len(accountant) == len(accountant.records) == 40 + told.count("fitted")
    in_child(lambda say: accountant.spend(1.0))
    assert accountant.records[-1].cost.epsilon == 1.0


@posix
def test_a_ledger_that_cannot_be_made_on_a_full_disk_leaves_nothing(tmp_path):
    def work(say):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        for limit in (0, 100, 4096, 5000, 8192, 9000):
            limit_files(limit)
            path = tmp_path / f"{limit}.db"
            with refused(path):
                BudgetAccountant(1.0, ledger=path)
        assert list(tmp_path.iterdir()) == []
        limit_files()
        BudgetAccountant(1.0, ledger=path).spend(1.0)

    in_child(work)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 64 kB."""
    if not sys.platform.startswith("linux") or os.getuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a small file system, on Linux")
    where = tmp_path / "small"
    where.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", where], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"mount is not allowed here: {mounted.stderr.strip()}")
    yield where
    subprocess.run(["umount", "-l", where], check=True)


def test_a_full_file_system_refuses_and_loses_nothing(small_disk):
    path = small_disk / "budget.db"
    accountant = BudgetAccountant(1000.0, ledger=path)
    spent = 0
    with refused(path):
        while spent < 1000:
            accountant.spend(0.5, label="x" * 1000)
            spent += 1
    assert 0 < spent < 100
    rest = small_disk / "rest"
    with contextlib.suppress(OSError), rest.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    for _ in range(3):
        with refused(path):
            accountant.spend(0.5, label="x" * 1000)
    with refused(small_disk / "other.db"):
        BudgetAccountant(1.0, ledger=small_disk / "other.db")
    assert not (small_disk / "other.db").exists()
    assert len(accountant) == len(accountant.records) == spent
    rest.unlink()
    assert len(BudgetAccountant.from_ledger(path).records) == spent


# ---------------------------------------------------------------- files that cannot be used


@posix
def test_a_file_that_is_read_only_can_be_read_and_not_charged(directory):
    path = directory / "budget.db"

    def work(say):
        live = BudgetAccountant(1.0, ledger=path)
        live.spend(0.25)
        path.chmod(0o400)
        with refused(path, "this user may not read and write the file", "mode 660 for the file"):
            BudgetAccountant(1.0, ledger=path)
        reader = BudgetAccountant.from_ledger(path)
        for accountant in (live, reader):
            with refused(path, "this user may not read and write the file", "mode 660 for the file"):
                accountant.spend(0.25)
            with refused(path, "this user may not read and write the file", "mode 660 for the file"):
                model(accountant).fit(X, Y)
            assert amounts(accountant) == [0.25]
            assert accountant.remaining() == Budget(0.75, 0.0)
            assert "1 charge" in repr(accountant)
        path.chmod(0o600)
        reader.spend(0.75)

    without_privileges(work)


@posix
def test_a_directory_that_is_read_only(directory):
    path, new = directory / "budget.db", directory / "new.db"

    def work(say):
        live = BudgetAccountant(1.0, ledger=path)
        live.spend(0.25)
        directory.chmod(0o500)
        with refused(new):
            BudgetAccountant(1.0, ledger=new)
        with refused(path):
            live.spend(0.25)
        assert amounts(BudgetAccountant.from_ledger(path)) == [0.25]
        directory.chmod(0o700)
        assert amounts(live) == [0.25]
        live.spend(0.75)

    without_privileges(work)


@posix
def test_opening_a_ledger_in_a_read_only_directory_is_refused_at_once(directory):
    path = directory / "budget.db"

    def work(say):
        BudgetAccountant(1.0, ledger=path)
        directory.chmod(0o500)
        with refused(path):
            BudgetAccountant(1.0, ledger=path)

    without_privileges(work)


@posix
def test_a_directory_that_cannot_be_searched(directory):
    path = directory / "budget.db"

    def work(say):
        live = BudgetAccountant(1.0, ledger=path)
        directory.chmod(0o000)
        for use in (
            lambda: BudgetAccountant(1.0, ledger=path),
            lambda: BudgetAccountant.from_ledger(path),
            lambda: live.spend(0.25),
            lambda: len(live),
        ):
            with refused(path):
                use()
        assert "BudgetAccountant(" in repr(live)

    without_privileges(work)


def test_a_directory_that_does_not_exist(tmp_path):
    path = tmp_path / "missing" / "budget.db"
    with refused(path):
        BudgetAccountant(1.0, ledger=path)
    with refused(path, "does not exist"):
        BudgetAccountant.from_ledger(path)
    assert not path.parent.exists()


def test_a_path_that_is_a_directory(tmp_path):
    for use in (lambda: BudgetAccountant(1.0, ledger=tmp_path), lambda: BudgetAccountant.from_ledger(tmp_path)):
        with refused(tmp_path):
            use()
    assert list(tmp_path.iterdir()) == []


def test_a_path_through_a_file(tmp_path):
    (tmp_path / "file").write_text("x")
    path = tmp_path / "file" / "budget.db"
    with refused(path):
        BudgetAccountant(1.0, ledger=path)


def test_a_name_that_is_too_long(tmp_path):
    path = tmp_path / ("x" * 300)
    for use in (lambda: BudgetAccountant(1.0, ledger=path), lambda: BudgetAccountant.from_ledger(path)):
        with refused(path):
            use()


@posix
@pytest.mark.parametrize("target", ["/dev/null", "/dev/zero", "pipe"])
def test_what_is_no_file(target, tmp_path):
    path = Path(target)
    if target == "pipe":
        path = tmp_path / "pipe"
        os.mkfifo(path)

    def work(say):
        with refused(path):
            BudgetAccountant(1.0, ledger=path)

    # In a child, because it could wait for ever.
    in_child(work)


GARBAGE = {
    "empty": b"",
    "blank": b" ",
    "zeros": bytes(8192),
    "text": b"epsilon,delta\n0.1,0\n" * 400,
    "head": b"SQLite format 3\0",
    "noise": np.random.default_rng(0).bytes(12288),
    "noise behind a head": b"SQLite format 3\0" + np.random.default_rng(1).bytes(12272),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE.keys())
def test_a_file_that_is_no_ledger(content, path):
    path.write_bytes(content)
    for use in (lambda: BudgetAccountant(1.0, ledger=path), lambda: BudgetAccountant.from_ledger(path)):
        with refused(path):
            use()
    assert path.read_bytes() == content


def test_another_database_is_no_ledger(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE budget (epsilon REAL)")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with refused(path, "is not a ledger"):
        BudgetAccountant(1.0, ledger=path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["bud get.db", "a?mode=ro#x&y%41;.db", "bücher.db", "'\"`$(x).db", ".db", "-wal"])
def test_names_with_unusual_characters(name, tmp_path):
    if os.name != "posix":
        pytest.skip("file names have other rules here")
    path = tmp_path / name
    BudgetAccountant(1.0, ledger=path).spend(0.5)
    assert os.listdir(tmp_path) == [name]
    assert amounts(BudgetAccountant(1.0, ledger=f"sqlite:///{path}")) == [0.5]


# ---------------------------------------------------------------- damaged files


def a_ledger(path):
    """A ledger with charges on all records and on a part."""
    accountant = BudgetAccountant(3.0, 1e-5, ledger=path, composition="gdp")
    for number in range(3):
        accountant.charge(gaussian_cost(0.1), label=f"label {number}", estimator="Model")
    accountant.parallel(by=["a"], parts=["a", "b"])["b"].accountant.charge(gaussian_cost(0.1))
    return accountant


def reopen(path):
    return BudgetAccountant(3.0, 1e-5, ledger=path, composition="gdp")


def refusal_of(path, error):
    """Whether a refusal is a clear one."""
    assert str(path) in str(error)
    return True


class Expected:
    """What a ledger must say whenever it says anything."""

    def __init__(self, accountant):
        self.records, self.total = accountant.records, accountant.total()

    def is_refused(self, path):
        """Whether the file is refused, by a clear error; if not, all that was spent must be counted."""
        try:
            accountant = reopen(path)
            counted = accountant.records, accountant.total(), len(accountant)
        except LedgerError as error:
            return refusal_of(path, error)
        assert counted == (self.records, self.total, len(self.records))
        return False


def test_a_truncated_file_is_refused(path):
    expected = Expected(a_ledger(path))
    whole = path.read_bytes()
    lengths = {0, 1, 15, 16, 17, 99, 100, 101, 511, 512, 513, *range(0, len(whole), 512), len(whole) - 1}
    for length in sorted(lengths):
        path.write_bytes(whole[:length])
        assert expected.is_refused(path), length
    path.write_bytes(whole)
    assert not expected.is_refused(path)


def test_a_file_with_more_at_its_end_is_refused_or_counted(path):
    expected = Expected(a_ledger(path))
    whole = path.read_bytes()
    for more in (b"\0", b"x", bytes(4096), whole, whole[:4096], np.random.default_rng(0).bytes(5000)):
        path.write_bytes(whole + more)
        expected.is_refused(path)


@pytest.mark.parametrize("block", [64, 512, 4096])
def test_a_file_with_a_damaged_block_is_refused_or_counted(block, path):
    expected = Expected(a_ledger(path))
    whole = path.read_bytes()
    outcomes = set()
    for start in range(0, len(whole), block):
        old = whole[start : start + block]
        for new in (bytes(block), b"\xff" * block, np.random.default_rng(start).bytes(block), whole[:block]):
            path.write_bytes(whole[:start] + new + whole[start + block :])
            outcomes.add((old == new, expected.is_refused(path)))
    assert (False, True) in outcomes
    assert (True, True) not in outcomes


def flips(content):
    """A place and a bit for every byte that is not 0, and for some that are."""
    chance = random.Random(7)
    for place, byte in enumerate(content):
        bit = 1 << chance.randrange(8)
        if byte or place % 16 == 0:
            yield place, bit


def flip(path, place, bit):
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ bit]))


@pytest.mark.sample(every=5)
def test_a_flipped_bit_is_refused_or_harmless(path):
    expected = Expected(a_ledger(path))
    whole = path.read_bytes()
    found, wrong = set(), []
    for place, bit in flips(whole):
        flip(path, place, bit)
        try:
            found.add(expected.is_refused(path))
        except (Exception, pytest.fail.Exception) as error:
            wrong.append((place, bit, repr(error)))
        flip(path, place, bit)
        assert os.listdir(path.parent) == [path.name]
    assert path.read_bytes() == whole
    assert not wrong
    assert found == {False, True}


@pytest.mark.parametrize("place", ["record", "budget", "name"])
def test_a_flipped_bit_where_it_matters_is_refused(place, path):
    expected = Expected(a_ledger(path))
    whole = path.read_bytes()
    # The high bit makes text that is no UTF-8, in the first bytes of what is searched for.
    sought = {"record": b"label 1", "budget": b"gdp", "name": b"tablebudget"}[place]
    for bit in range(8):
        flip(path, whole.index(sought) + 5 * (place == "name"), 1 << bit)
        assert expected.is_refused(path)
        path.write_bytes(whole)


@pytest.mark.sample(every=5)
def test_without_digests_flipped_bits_would_count(path, monkeypatch):
    # The broken twin: a ledger without digests.
    monkeypatch.setattr(_sqlite, "_digest", lambda *fields: "")
    expected = Expected(a_ledger(path))
    miscounted = 0
    for place, bit in flips(path.read_bytes()):
        flip(path, place, bit)
        try:
            expected.is_refused(path)
        except AssertionError:
            miscounted += 1
        except Exception as error:
            # What is not text, or no JSON.
            assert isinstance(error, ValueError | KeyError | TypeError)  # noqa: PT017
        flip(path, place, bit)
        if miscounted > 10:
            break
    assert miscounted


@pytest.mark.sample(every=5)
def test_a_bit_that_flips_under_a_live_accountant(quick_path):
    a_ledger(quick_path)
    whole = quick_path.read_bytes()
    cost = gaussian_cost(0.2)
    after = a_ledger(quick_path.with_name("twin.db"))
    after.charge(cost, label="new")
    found, wrong = set(), []
    for place, bit in list(flips(whole))[::3]:
        quick_path.write_bytes(whole)
        live = BudgetAccountant.from_ledger(quick_path)
        flip(quick_path, place, bit)
        try:
            live.charge(cost, label="new")
            found.add("charged")
            assert (len(live), live.total()) == (5, after.total())
            reopened = reopen(quick_path)
            assert (len(reopened.records), reopened.total()) == (5, after.total())
        except LedgerError as error:
            found.add("refused" if refusal_of(quick_path, error) else "")
        except Exception as error:
            wrong.append((place, bit, repr(error)))
    assert not wrong
    assert found == {"charged", "refused"}


def test_a_damaged_ledger_is_damaged_and_not_locked(path, monkeypatch):
    # An exception that is kept, as interactive shells do, must not keep a lock on the file.
    monkeypatch.setattr(_sqlite, "_PATIENCE", 0.2)
    live = a_ledger(path)
    whole = path.read_bytes()
    flip(path, whole.index(b"label 1"), 1)
    with pytest.raises(LedgerError, match="damaged") as kept:
        _ = live.records
    connection = sqlite3.connect(path, timeout=0.2, isolation_level=None)
    try:
        connection.execute("BEGIN EXCLUSIVE")
    finally:
        connection.close()
    assert kept.value is not None


# ---------------------------------------------------------------- clocks


@pytest.mark.parametrize("step", [timedelta(days=-400), timedelta(0), timedelta(days=400)])
def test_clocks_do_not_matter(step, path, monkeypatch):
    times = [datetime(2026, 1, 1, tzinfo=UTC) + number * step for number in range(4)]
    clock = iter(times)
    monkeypatch.setattr(_accountant, "datetime", SimpleNamespace(now=lambda zone: next(clock).astimezone(zone)))
    accountant = BudgetAccountant(1.0, ledger=path)
    for number, epsilon in enumerate((0.1, 0.2, 0.3, 0.4)):
        accountant.spend(epsilon, label=str(number))
    for opened in (accountant, BudgetAccountant(1.0, ledger=path)):
        assert [(record.label, record.cost.epsilon) for record in opened.records] == [
            ("0", 0.1),
            ("1", 0.2),
            ("2", 0.3),
            ("3", 0.4),
        ]
        assert [record.time for record in opened.records] == times
        assert opened.total() == Budget(1.0, 0.0)


def test_clocks_at_the_ends_of_time(path, monkeypatch):
    clock = iter([datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
    monkeypatch.setattr(_accountant, "datetime", SimpleNamespace(now=lambda zone: next(clock)))
    accountant = BudgetAccountant(1.0, ledger=path)
    for label in "ab":
        accountant.spend(0.5, label=label)
    assert [record.label for record in BudgetAccountant.from_ledger(path).records] == ["a", "b"]


# ---------------------------------------------------------------- other interpreters

SPENDER = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    accountant = pickle.load(file)
accountant.spend(0.25, label="elsewhere")
try:
    accountant.spend(0.75)
except Exception as error:
    print(type(error).__name__)
print(len(accountant), accountant.remaining().epsilon)
"""


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.sample(every=3)
def test_a_pickled_accountant_spends_from_the_same_budget_elsewhere(durable, path, tmp_path):
    accountant = BudgetAccountant(1.0, ledger=path if durable else None)
    accountant.spend(0.25, label="here")
    sent = tmp_path / "accountant.pickle"
    sent.write_bytes(pickle.dumps(accountant))
    assert python(SPENDER, sent) == ["BudgetError", "2", "0.5"]
    assert [record.label for record in accountant.records] == ["here", "elsewhere"]
    accountant.spend(0.5)
    with pytest.raises(BudgetError):
        accountant.spend(0.01)


FITTER = """
import pickle, sys
import numpy as np
from skdp import BudgetAccountant, ObjPertLogReg
accountant = BudgetAccountant(1.0, ledger=sys.argv[2] if len(sys.argv) > 2 else None)
X = np.array([[0.3, 0.1], [-0.2, 0.4], [0.1, -0.5], [-0.4, -0.1]] * 6)
model = ObjPertLogReg(epsilon=0.25, data_norm=1.0, classes=[0, 1], accountant=accountant).fit(X, [0, 1, 1, 0] * 6)
with open(sys.argv[1], "wb") as file:
    pickle.dump(model, file)
"""


@pytest.mark.sample(every=4)
def test_a_model_outlives_the_memory_that_it_was_charged_to(tmp_path, released):
    saved = tmp_path / "model.pickle"
    python(FITTER, saved)
    loaded = pickle.loads(saved.read_bytes())
    assert loaded.predict(X).shape == Y.shape
    assert loaded.privacy_.epsilon == 0.25
    assert loaded.accountant.epsilon == 1.0
    for text in (repr(loaded), repr(loaded.accountant), loaded._repr_html_(), loaded.accountant._repr_html_()):
        assert "BudgetAccountant" in text
    for use in (
        lambda: copy.deepcopy(loaded).fit(X, Y),
        lambda: loaded.accountant.spend(0.1),
        lambda: loaded.accountant.check(0.1),
        lambda: loaded.accountant.records,
        lambda: loaded.accountant.total(),
    ):
        with pytest.raises(LedgerError, match="temporary ledger of this accountant was removed"):
            use()
    assert released == []
    # Saved again, it is the same.
    assert pickle.loads(pickle.dumps(loaded)).predict(X).shape == Y.shape


@pytest.mark.sample(every=4)
def test_a_model_finds_its_ledger_again(path, tmp_path):
    saved = tmp_path / "model.pickle"
    python(FITTER, saved, path)
    loaded = pickle.loads(saved.read_bytes())
    loaded.fit(X, Y)
    assert amounts(BudgetAccountant.from_ledger(path)) == [0.25, 0.25]
    path.unlink()
    loaded.predict(X)
    assert str(path) in repr(loaded.accountant)
    with refused(path, "exists no longer"):
        loaded.fit(X, Y)


# ---------------------------------------------------------------- files that are replaced


def uses(accountant, released):
    """Everything that must refuse when the file is not the right one."""
    return [
        lambda: accountant.spend(0.1),
        lambda: accountant.check(0.1),
        lambda: model(accountant).fit(X, Y),
        lambda: accountant.records,
        lambda: accountant.total(),
        lambda: accountant.remaining(),
        lambda: len(accountant),
    ]


def assert_refused(accountant, path, released, *words):
    for use in uses(accountant, released):
        with refused(path, *words):
            use()
    assert released == []
    assert "BudgetAccountant(" in repr(accountant)


def test_a_ledger_that_is_deleted_is_missed(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.5)
    sent = pickle.dumps(accountant)
    path.unlink()
    assert_refused(accountant, path, released, "exists no longer")
    assert_refused(pickle.loads(sent), path, released, "exists no longer")
    with refused(path, "exists no longer"):
        BudgetAccountant(1.0, ledger=path)
    with refused(path):
        BudgetAccountant.from_ledger(path)
    assert os.listdir(path.parent) == []


def test_a_ledger_that_was_only_read_is_missed_too(path):
    python("import sys, skdp; skdp.BudgetAccountant(1.0, ledger=sys.argv[1]).spend(0.5)", path)
    BudgetAccountant.from_ledger(path)
    path.unlink()
    with refused(path, "exists no longer"):
        BudgetAccountant(1.0, ledger=path)


def test_a_ledger_that_is_emptied_is_refused(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.5)
    path.write_bytes(b"")
    assert_refused(accountant, path, released)
    with refused(path):
        BudgetAccountant(1.0, ledger=path)


@pytest.mark.parametrize("records", [0, 1, 5])
def test_another_ledger_in_its_place_is_refused(records, path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.1)
    accountant.spend(0.1)
    sent = pickle.dumps(accountant)
    other = BudgetAccountant(1.0, ledger=path.with_name("other.db"))
    for _ in range(records):
        other.spend(0.1)
    os.replace(path.with_name("other.db"), path)
    assert_refused(accountant, path, released, "another ledger")
    assert_refused(pickle.loads(sent), path, released, "another ledger")
    assert len(BudgetAccountant.from_ledger(path)) == records


def test_an_older_copy_in_its_place_is_refused(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.1)
    older = path.with_name("older.db")
    shutil.copy(path, older)
    accountant.spend(0.1)
    sent = pickle.dumps(accountant)
    shutil.copy(older, path)
    assert_refused(accountant, path, released, "older copy")
    assert_refused(pickle.loads(sent), path, released, "older copy")


def test_an_older_copy_that_went_another_way_is_refused(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    older = path.with_name("older.db")
    shutil.copy(path, older)
    accountant.spend(0.1, label="here")
    shutil.copy(older, path)
    BudgetAccountant.from_ledger(path).spend(0.1, label="there")
    assert_refused(accountant, path, released, "older copy")


def test_reading_is_enough_to_know_an_older_copy(path, released):
    reader = BudgetAccountant(1.0, ledger=path)
    writer = BudgetAccountant.from_ledger(path)
    older = path.with_name("older.db")
    shutil.copy(path, older)
    writer.spend(0.1)
    assert len(reader) == 1
    shutil.copy(older, path)
    assert_refused(reader, path, released, "older copy")


@pytest.mark.sample(every=5)
def test_a_slow_thread_does_not_forget_what_a_quick_one_has_seen(quick_path):
    # One thread stops at some step of its charge, and another one charges in the meantime.
    older = quick_path.with_name("older.db")
    accountant = BudgetAccountant(1e6, ledger=quick_path)

    def quick():
        if gate.acquire(blocking=False):
            try:
                shutil.copy(quick_path, older)
                accountant.spend(0.5, label="quick")
            finally:
                gate.release()

    with Steps() as steps:
        accountant.spend(0.25, label="slow")
    tried = 0
    for step in every_line(steps.places):
        before = len(BudgetAccountant.from_ledger(quick_path))
        older.unlink(missing_ok=True)
        with Steps(step, lambda: in_threads([quick])):
            accountant.spend(0.25, label="slow")
        # Another accountant counts: this one would learn from reading.
        assert len(BudgetAccountant.from_ledger(quick_path)) == before + 1 + older.exists()
        if older.exists():
            tried += 1
            newest = quick_path.read_bytes()
            shutil.copy(older, quick_path)
            with refused(quick_path, "older copy"):
                accountant.spend(0.25)
            quick_path.write_bytes(newest)
    assert tried > 10
    assert tried < len(steps.places)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((2.0, 1e-5, "gdp"), ["epsilon=1,", "epsilon=2,"]),
        ((0.5, 1e-5, "gdp"), ["epsilon=1,", "epsilon=0.5,"]),
        ((1.0, 1e-6, "gdp"), ["delta=1e-05", "delta=1e-06"]),
        ((1.0, 0.0, "basic"), ["delta=1e-05", "delta=0", "'gdp'", "'basic'"]),
        ((1.0, 1e-5, "rdp"), ["'gdp'", "'rdp'"]),
        ((1.0, 1e-5, "auto"), ["'gdp'", "'auto'"]),
    ],
)
def test_another_ceiling_or_composition_is_refused(asked, said, path):
    accountant = BudgetAccountant(1.0, 1e-5, ledger=path, composition="gdp")
    accountant.charge(gaussian_cost(0.01))
    epsilon, delta, composition = asked
    with refused(path, "from_ledger", *said):
        BudgetAccountant(epsilon, delta, ledger=path, composition=composition)
    assert len(accountant) == 1


def test_a_newer_schema_is_refused(path, released):
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.5)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    before = path.read_bytes()
    for use in (lambda: BudgetAccountant(1.0, ledger=path), lambda: BudgetAccountant.from_ledger(path)):
        with refused(path, "version 9999"):
            use()
    assert_refused(accountant, path, released, "version 9999")
    assert path.read_bytes() == before


# ---------------------------------------------------------------- locks of other processes


def locker(path, until):
    """A child that holds the file's lock until the pipe `until` ends."""

    def work(say):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN EXCLUSIVE")
        say("locked")
        os.read(until, 1)
        connection.execute("ROLLBACK")

    child = Child(work)
    child.listen(until="locked")
    return child


@pytest.fixture
def pipe():
    ends = list(os.pipe())
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


@posix
def test_a_lock_that_lasts_is_an_error(path, pipe, released, monkeypatch):
    monkeypatch.setattr(_sqlite, "_PATIENCE", 0.05)
    accountant = BudgetAccountant(1.0, ledger=path)
    accountant.spend(0.25)
    child = locker(path, pipe[0])
    try:
        assert_refused(accountant, path, released, "in use by another process")
        with refused(path, "in use by another process"):
            BudgetAccountant(1.0, ledger=path)
    finally:
        child.kill()
        child.close()
    assert amounts(accountant) == [0.25]
    accountant.spend(0.75)


@posix
def test_a_lock_that_is_released_in_time_is_waited_for(path, pipe):
    accountant = BudgetAccountant(1.0, ledger=path)
    child = locker(path, pipe[0])
    waiting = threading.Thread(target=accountant.spend, args=(0.25,), daemon=True)
    waiting.start()
    # Whatever the order, the charge can only be recorded when the lock is gone.
    time.sleep(0.1)
    assert waiting.is_alive()
    os.write(pipe[1], b"x")
    child.said()
    waiting.join(PATIENCE)
    assert amounts(accountant) == [0.25]


@posix
def test_a_reader_elsewhere_does_not_stop_a_charge_for_good(path, pipe):
    accountant = BudgetAccountant(1.0, ledger=path)

    def work(say):
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN")
        connection.execute("SELECT * FROM budget").fetchall()
        say("reads")
        os.read(pipe[0], 1)
        connection.execute("ROLLBACK")

    child = Child(work)
    child.listen(until="reads")
    with pytest.MonkeyPatch.context() as patch, refused(path, "in use by another process"):
        patch.setattr(_sqlite, "_PATIENCE", 0.05)
        accountant.spend(0.25)
    assert len(accountant) == 0
    os.write(pipe[1], b"x")
    child.said()
    accountant.spend(1.0)


# ---------------------------------------------------------------- interrupts


@posix
def test_interrupts_lose_no_acknowledged_charge(path):
    def work(say):
        # An interrupt can leave the lock of a tracer closed, as of coverage.
        sys.settrace(None)
        threading.settrace(None)
        accountant = BudgetAccountant(1000.0, ledger=path)
        acknowledged = interrupts = 0
        signal.signal(signal.SIGINT, signal.default_int_handler)
        while interrupts < 100:
            try:
                # What waits is delivered here.
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                while True:
                    accountant.spend(0.001)
                    acknowledged += 1
                    if acknowledged == 1:
                        say("first")
            except KeyboardInterrupt:
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
                interrupts += 1
                say("interrupted")
        # Nothing is left locked: a thread can charge.
        assert in_threads([lambda: accountant.spend(1.0)]) == [None]
        say("acknowledged", acknowledged)

    child = Child(work)
    child.listen(until="first")
    chance = random.Random(3)
    for number in range(1, 101):
        time.sleep(chance.uniform(0.0, 0.004))
        child.kill(signal.SIGINT)
        child.listen(until="interrupted", times=number)
    said = child.said()
    acknowledged = int(said[-1].split()[1])
    accountant = BudgetAccountant(1000.0, ledger=path)
    assert acknowledged <= len(accountant.records) - 1 <= acknowledged + 100
    assert accountant.total().epsilon == pytest.approx(1.0 + 0.001 * (len(accountant) - 1))


def interrupted(accountant, work):
    """Interrupt `work` after each call that it makes in the ledger's code; yield what was released and recorded."""

    def interrupt():
        raise KeyboardInterrupt

    # The first charge has no earlier one to compare with, and makes fewer calls.
    accountant.spend(0.25)
    with Calls() as calls:
        work(accountant, lambda word: None)
    assert len(calls.places) > 50
    for step in sorted({*every_line(calls.places), *every_step(calls.places)[-8:]}):
        before = len(accountant.records)
        said = []
        with contextlib.suppress(KeyboardInterrupt), Calls(step, interrupt):
            work(accountant, said.append)
        recorded = len(accountant.records)
        assert recorded == len(accountant)
        assert accountant.total().epsilon == 0.25 * recorded
        yield bool(said), recorded - before
        # Nothing is left locked: another thread can charge.
        assert in_threads([lambda: accountant.spend(0.25)]) == [None]


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.sample(every=3)
def test_an_interrupt_after_any_call_leaves_the_ledger_usable(durable, quick_path):
    accountant = BudgetAccountant(1e6, ledger=quick_path if durable else None)
    assert set(interrupted(accountant, session)) == {(False, 0), (False, 1), (True, 1)}
    assert not durable or len(BudgetAccountant.from_ledger(quick_path).records) == len(accountant)


@pytest.mark.parametrize("twin", [charge_late, charge_early])
@pytest.mark.sample(every=3)
def test_interrupts_find_a_release_without_a_record(twin, quick_path):
    assert (True, 0) in interrupted(BudgetAccountant(1e6, ledger=quick_path), twin)


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.sample(every=3)
def test_a_charge_in_the_middle_of_another_is_not_lost(durable, quick_path, monkeypatch):
    # As by a signal handler or a finaliser, which runs in the same thread.
    monkeypatch.setattr(_sqlite, "_PATIENCE", 0.01)
    accountant = BudgetAccountant(1e6, ledger=quick_path if durable else None)
    acknowledged = []

    def spend(label):
        try:
            accountant.spend(0.25, label=label)
        except LedgerError:
            return
        acknowledged.append(label)

    with Calls() as calls:
        spend("outer")
    for step in every_line(calls.places):
        with Calls(step, lambda: spend("inner")):
            spend("outer")
        assert sorted(record.label for record in accountant.records) == sorted(acknowledged), calls.places[step - 1]
        assert accountant.total().epsilon == 0.25 * len(acknowledged), calls.places[step - 1]
    assert acknowledged.count("outer") > 1
    assert acknowledged.count("inner") > 1


def test_a_pickle_in_the_middle_of_a_charge_loses_nothing():
    def charge(step=0):
        accountant = BudgetAccountant(1.0)
        accountant.spend(0.25, label="before")
        sent = []

        def send():
            with contextlib.suppress(LedgerError):
                sent.append(pickle.dumps(accountant))

        with Calls(step, send) as calls:
            accountant.spend(0.25, label="outer")
        return calls.places, accountant, sent

    moved = 0
    for step in every_line(charge()[0]):
        places, accountant, sent = charge(step)
        moved += len(sent)
        for one in (accountant, *map(pickle.loads, sent)):
            assert [record.label for record in one.records] == ["before", "outer"], places[step - 1]
            assert one.remaining() == Budget(0.5, 0.0)
    assert moved


# ---------------------------------------------------------------- paths, modes, settings


def test_a_relative_path_is_fixed_when_the_ledger_is_opened(tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "one")
    accountant = BudgetAccountant(1.0, ledger="budget.db")
    accountant.spend(0.1)
    sent = pickle.dumps(accountant)
    monkeypatch.chdir(tmp_path / "two")
    accountant.spend(0.1)
    pickle.loads(sent).spend(0.1)
    assert accountant.ledger == Path(os.path.realpath(tmp_path / "one" / "budget.db"))
    assert os.listdir(tmp_path / "two") == []
    assert amounts(BudgetAccountant.from_ledger(tmp_path / "one" / "budget.db")) == [0.1] * 3


def test_a_link_and_its_target_are_one_ledger(tmp_path):
    (tmp_path / "real").mkdir()
    for link, target in (("link.db", "real/budget.db"), ("directory", "real")):
        try:
            os.symlink(target, tmp_path / link)
        except OSError:
            pytest.skip("symbolic links cannot be made here")
    names = [tmp_path / "link.db", tmp_path / "real" / "budget.db", tmp_path / "directory" / "budget.db"]
    accountants = [BudgetAccountant(1.0, ledger=name) for name in names]
    for accountant in accountants:
        accountant.spend(0.25)
    assert {accountant.ledger for accountant in accountants} == {Path(os.path.realpath(names[1]))}
    assert [len(accountant) for accountant in accountants] == [3] * 3
    names[1].unlink()
    for name in names:
        with refused(os.path.realpath(names[1]), "exists no longer"):
            BudgetAccountant(1.0, ledger=name)


@posix
def test_urls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Three slashes and a relative path; four and an absolute one.
    for url in ("sqlite:///budget.db", f"sqlite:///{tmp_path}/budget.db", "budget.db", b"budget.db".decode()):
        BudgetAccountant(1.0, ledger=url).spend(0.25)
    assert amounts(BudgetAccountant.from_ledger(tmp_path / "budget.db")) == [0.25] * 4
    assert os.listdir(tmp_path) == ["budget.db"]
    for bad in ("sqlite://budget.db", "sqlite:budget.db", "sqlite:///", "sqlite://"):
        with pytest.raises(ValueError, match="ledger must be"):
            BudgetAccountant(1.0, ledger=bad)
    with pytest.raises(ValueError, match="memory"):
        BudgetAccountant(1.0, ledger=":memory:")
    for bad in ("", b"budget.db", 3):
        with pytest.raises(TypeError):
            BudgetAccountant(1.0, ledger=bad)


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_only_its_owner_can_read_a_ledger(mask, path, tmp_path):
    old = os.umask(mask)
    try:
        accountant = BudgetAccountant(1.0, ledger=path)
        accountant.spend(0.25)
        memory = BudgetAccountant(1.0)
        pickle.dumps(memory)
    finally:
        os.umask(old)
    assert path.stat().st_mode & 0o777 == 0o600
    temporary = memory._store._successor.path
    assert temporary.stat().st_mode & 0o777 == 0o600
    assert temporary.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(tmp_path) == [path.name]


class Watched(sqlite3.Connection):
    """A connection that notes its settings at each commit."""

    seen = ()

    def execute(self, statement, *arguments):
        if statement == "COMMIT":
            (synchronous,) = super().execute("PRAGMA synchronous").fetchone()
            (journal,) = super().execute("PRAGMA journal_mode").fetchone()
            Watched.seen.append((synchronous, journal, self.in_transaction))
        return super().execute(statement, *arguments)


@pytest.fixture
def commits(monkeypatch):
    monkeypatch.setattr(Watched, "seen", [])
    monkeypatch.setattr(sqlite3, "connect", _with_factory(sqlite3.connect))
    return Watched.seen


def _with_factory(connect):
    return lambda *arguments, **options: connect(*arguments, **options, factory=Watched)


def test_every_commit_is_synchronous_and_has_a_rollback_journal(path, commits):
    accountant = BudgetAccountant(1.0, ledger=path)
    assert commits
    accountant.spend(0.25)
    model(accountant).fit(X, Y)
    accountant.parallel(by=[1], parts=[1]).close()
    assert len(commits) >= 5
    # FULL is 2 and EXTRA is 3: after a commit, the end of the journal is on disk too.
    assert set(commits) == {(3, "delete", True)}


@posix
def test_the_name_of_a_new_ledger_is_synchronised(path, monkeypatch):
    synchronised = []
    fsync = os.fsync

    def noted(handle):
        synchronised.append((os.fstat(handle).st_ino, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    BudgetAccountant(1.0, ledger=path)
    assert (path.parent.stat().st_ino, True) in synchronised


# ---------------------------------------------------------------- workers of joblib


def scores(accountant, n_jobs):
    cross_val_score(model(accountant), X, Y, cv=3, n_jobs=n_jobs, error_score="raise")
    return 3


def validation(accountant, n_jobs):
    found = cross_validate(
        model(accountant),
        X,
        Y,
        cv=2,
        n_jobs=n_jobs,
        error_score="raise",
        return_estimator=True,
        return_train_score=True,
    )
    assert [fitted.privacy_.epsilon for fitted in found["estimator"]] == [0.1] * 2
    return 2


def search(accountant, n_jobs):
    searched = GridSearchCV(model(accountant), {"C": [0.5, 2.0]}, cv=2, n_jobs=n_jobs, error_score="raise")
    searched.fit(X, Y)
    # Two candidates on two folds, and the best again on all rows.
    return 5


def bagging(accountant, n_jobs):
    # Bagging passes weights: 1 for each record that it draws.
    inside = model(accountant).set_params(max_weight=1.0)
    BaggingClassifier(inside, n_estimators=4, bootstrap=False, n_jobs=n_jobs).fit(X, Y)
    return 4


TOOLS = [scores, validation, search, bagging]


@pytest.mark.filterwarnings("ignore::skdp.exceptions.SeededNoiseWarning")
@pytest.mark.filterwarnings("ignore:The guarantee in privacy_ does not hold")
@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("tool", TOOLS)
def test_every_fit_in_a_worker_is_charged_once(tool, n_jobs, backend, durable, path):
    accountant = BudgetAccountant(1.0, ledger=path if durable else None)
    with joblib.parallel_config(backend):
        fits = tool(accountant, n_jobs)
    assert len(accountant) == fits
    assert [(r.estimator, r.cost.epsilon) for r in accountant.records] == [("ObjPertLogReg", 0.1)] * fits
    assert accountant.total() == (pytest.approx(0.1 * fits), 0.0)


@pytest.mark.parametrize("durable", [False, True], ids=["memory", "file"])
@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.sample(every=5)
def test_workers_cannot_exceed_the_ceiling(backend, durable, path):
    accountant = BudgetAccountant(0.25, ledger=path if durable else None)
    with joblib.parallel_config(backend), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Not a score of NaN: that would hide which fits there were.
        with pytest.raises(BudgetError):
            cross_val_score(model(accountant), X, Y, cv=4, n_jobs=2, error_score=np.nan)
    assert amounts(accountant) == [0.1] * 2


class Forgetful(BudgetAccountant):
    """The broken twin: every clone has a budget of its own."""

    def __sklearn_clone__(self):
        return Forgetful(self.epsilon, self.delta)


@pytest.mark.parametrize("tool", [scores, validation, search])
def test_counting_finds_clones_with_budgets_of_their_own(tool):
    accountant = Forgetful(1.0)
    assert len(accountant) < tool(accountant, 1)
