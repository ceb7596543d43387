"""The tests that `make test` leaves out at one commit are run at another: see tests/sampling.py."""

from collections import Counter

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPStandardScaler
from tests import cpu_time, sampling
from tests.sampling import FEW, PERIOD, chosen


def groups_of_the_run(request):
    """The groups of all tests that were collected, whichever of them are run."""
    return sampling.groups_of(collected(request))


def collected(request):
    return request.config.pluginmanager.get_plugin(sampling.__name__).collected


def commits(first=217):
    return range(first, first + PERIOD)


def test_any_thirty_consecutive_commits_run_every_test(request):
    groups = groups_of_the_run(request)
    expected = {test for tests, _ in groups.values() for test in tests} - {None}
    assert request.node.nodeid in expected
    for first in (0, 217, 2**70):
        assert set().union(*(chosen(groups, commit) for commit in commits(first))) == expected


def test_each_commit_runs_every_function_rule_of_a_class_subject_of_audits_and_theorem(request):
    # But for those functions that take long, or are marked to be run at some commits only.
    groups = groups_of_the_run(request)
    for commit in commits():
        sample = chosen(groups, commit)
        for tests, k in groups.values():
            assert None in tests or len(sample & set(tests)) == k > 0


def test_no_theorem_is_left_out_at_a_commit(request):
    groups = groups_of_the_run(request)
    left_out = {test for tests, _ in groups.values() if None in tests for test in tests} - {None}
    theorems = {item.nodeid for item in collected(request) if item.get_closest_marker("theorem")}
    assert not left_out & theorems


def test_no_commit_takes_long_by_the_table(request):
    groups, seconds = groups_of_the_run(request), sampling.read_seconds()
    totals = [sum(seconds.get(test.partition("[")[0], 0.0) for test in chosen(groups, c)) for c in commits()]
    # Collection takes some 30 s, and functions that are not in the table 10 s.
    assert max(totals) <= cpu_time.LIMIT - 40


def test_the_table_names_functions_that_there_are(request):
    functions = {sampling.function_of(item) for item in collected(request)}
    files = {function.partition("::")[0] for function in functions}
    # Some may have been collected only.
    listed = {function for function in sampling.read_seconds() if function.partition("::")[0] in files}
    if not any("::" in argument for argument in request.config.args):
        assert listed <= functions


@pytest.mark.parametrize(("size", "least"), [(1, 1), (2, 1), (7, 2), (30, 1), (31, 1), (60, 2), (61, 2), (1000, 1)])
def test_turns(size, least):
    k = min(size, max(least, -(-size // PERIOD)))
    groups = {("f", ""): ([f"f[{i}]" for i in range(size)], k)}
    period = -(-size // k)
    assert period <= PERIOD
    for first in range(size + 1):
        seen = Counter(test for commit in range(first, first + period) for test in chosen(groups, commit))
        assert len(seen) == size
        # And not one test far more often than another.
        assert max(seen.values()) <= 2


class Item:
    """As much of a test as the sampler looks at."""

    def __init__(self, nodeid, marks=(), **params):
        self.nodeid = nodeid
        self.marks = marks
        if params:
            self.callspec = type("Callspec", (), {"params": params})

    def iter_markers(self, name):
        return iter([mark.mark for mark in self.marks if mark.mark.name == name])


def test_a_test_for_each_class_and_few_of_other_parameters():
    instances = [LinearRegression(), LinearRegression(positive=True), LogisticRegression(), DPStandardScaler]
    rule = [Item(f"rule[{i}-{how}]", estimator=each, how=how) for i, each in enumerate(instances) for how in "ab"]
    plain = [Item(f"plain[{i}]", i=i) for i in range(10)]
    groups = sampling.groups_of([*rule, *plain, Item("alone")], {})
    assert {name: (len(tests), k) for name, (tests, k) in groups.items()} == {
        ("rule", "LinearRegression"): (4, 1),
        ("rule", "LogisticRegression"): (2, 1),
        ("rule", "DPStandardScaler"): (2, 1),
        ("plain", ""): (10, FEW),
        ("alone", ""): (1, 1),
    }


def test_marks():
    by = pytest.mark.sample(by=lambda subject: subject.lower())
    audits = [Item(f"audit[{each}-{claim}]", [by], subject=each, claim=claim) for each in "AB" for claim in range(40)]
    every = pytest.mark.sample(every=3)
    slow = [Item("slow", [every]), *(Item(f"slower[{i}]", [every], i=i) for i in range(4))]
    groups = sampling.groups_of([*audits, *slow], {})
    assert [groups["audit", name][1] for name in "ab"] == [2, 2]
    counts = Counter(test for commit in commits() for test in chosen(groups, commit))
    assert counts["slow"] == 10
    # Twelve places, four of which are tests, come round in twelve commits.
    turns = Counter(test for commit in range(12) for test in chosen(groups, commit))
    assert {turns[f"slower[{i}]"] for i in range(4)} == {1}


def test_functions_that_take_long_run_less():
    kinds = [LinearRegression(), LogisticRegression()]
    rule = [Item(f"rule[{i}-{how}]", estimator=each, how=how) for i, each in enumerate(kinds) for how in "abc"]
    theorem = Item("theorem", [pytest.mark.theorem])
    long = dict.fromkeys(["alone", "theorem"], 1.0) | {"rule": 0.2, "hours": 1e4}
    groups = sampling.groups_of([*rule, Item("alone"), Item("hours"), theorem, Item("short")], long)
    counts = Counter(test for commit in commits() for test in chosen(groups, commit))
    every = {"rule": sampling.one_commit_of(0.2, 2), "alone": 10}
    assert 1 < every["rule"] < 30
    assert (counts["alone"], counts["theorem"], counts["short"], counts["hours"]) == (3, PERIOD, PERIOD, 1)
    assert sampling.LONGEST * every["alone"] == 1.0
    for each in rule:
        assert 1 <= counts[each.nodeid] <= 2 * PERIOD / (3 * every["rule"]) + 1
    # Tests are apart, so that no commit has all of them.
    for commit in commits():
        assert len(chosen(groups, commit) & {each.nodeid for each in rule}) <= 2


def test_the_table_is_renewed(tmp_path):
    path = tmp_path / "seconds.txt"
    cpu_time.write_seconds({"f": (3.0, 2), "g": (1.0, 1), "quick": (0.01, 1)}, path)
    cpu_time.write_seconds({"g": (1.0, 4)}, path)
    assert sampling.read_seconds(path) == {"f": 1.5, "g": 0.25}


def test_the_commit_is_known_without_git(monkeypatch):
    monkeypatch.delenv(sampling.VARIABLE, raising=False)

    def no_git(*arguments):
        raise FileNotFoundError

    monkeypatch.setattr(sampling, "_git", no_git)
    assert sampling.commit_number() == sampling.commit_number()
    monkeypatch.setenv(sampling.VARIABLE, "12")
    assert sampling.commit_number() == 12


def test_a_shallow_clone_does_not_stay_with_one_sample(monkeypatch):
    monkeypatch.delenv(sampling.VARIABLE, raising=False)
    said = {"rev-parse --show-toplevel": str(sampling.ROOT), "rev-parse --is-shallow-repository": "true"}
    numbers = set()
    for commit in "abc":
        monkeypatch.setattr(sampling, "_git", lambda *words, commit=commit: said.get(" ".join(words), commit))
        numbers.add(sampling.commit_number())
    assert len(numbers) == 3
