"""`make test` runs the same quick tests each time, for every class and every rule: see tests/sampling.py."""

import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from skdp import DPStandardScaler
from tests import cpu_time, sampling
from tests.sampling import chosen


def collected(request):
    """All tests that were collected, whichever of them are run."""
    return request.config.pluginmanager.get_plugin(sampling.__name__).collected


def test_what_takes_little_and_theorems_are_run(request):
    seconds, sample = sampling.read_seconds(), chosen(collected(request))
    functions = {sampling.function_of(item) for item in collected(request)}
    run = {test.partition("[")[0] for test in sample}
    assert functions - run <= seconds.keys()
    theorems = {sampling.function_of(item) for item in collected(request) if item.get_closest_marker("theorem")}
    assert theorems <= run


def test_the_selection_does_not_take_long_by_the_table(request):
    seconds = sampling.read_seconds()
    # Collection takes some 30 s, and functions that are not in the table 10 s.
    assert sum(seconds.get(test.partition("[")[0], 0.0) for test in chosen(collected(request))) <= cpu_time.LIMIT - 40


def test_the_table_names_functions_that_there_are(request):
    functions = {sampling.function_of(item) for item in collected(request)}
    files = {function.partition("::")[0] for function in functions}
    # Some may have been collected only.
    listed = {function for function in sampling.read_seconds() if function.partition("::")[0] in files}
    if not any("::" in argument for argument in request.config.args):
        assert listed <= functions, f"{sampling.SECONDS.name} is to have the new names"


class Item:
    """As much of a test as is looked at."""

    def __init__(self, nodeid, marks=(), **params):
        self.nodeid = nodeid
        self.marks = marks
        if params:
            self.callspec = type("Callspec", (), {"params": params})

    def iter_markers(self, name):
        return iter([mark.mark for mark in self.marks if mark.mark.name == name])


def rules_for(*instances):
    """The tests of a rule, in two variants of each instance."""
    return [Item(f"rule[{i}-{how}]", estimator=each, how=how) for i, each in enumerate(instances) for how in "ab"]


def test_a_test_for_each_class_and_one_of_other_parameters():
    rule = rules_for(LinearRegression(), LinearRegression(positive=True), LogisticRegression(), DPStandardScaler)
    plain = [Item(f"plain[{i}]", i=i) for i in range(10)]
    sample = chosen([*rule, *plain, Item("alone")], {})
    assert len(sample) == 5
    for places in ("01", "2", "3"):
        assert sum(test.startswith(tuple(f"rule[{i}-" for i in places)) for test in sample) == 1
    assert "alone" in sample


def test_subjects():
    by = pytest.mark.sample(by=lambda subject: subject.lower())
    audits = [Item(f"audit[{each}-{claim}]", [by], subject=each, claim=claim) for each in "AaB" for claim in range(40)]
    assert len(chosen(audits, {})) == 2


def test_functions_that_take_long_run_less(monkeypatch):
    monkeypatch.setattr(sampling, "LONGEST", 1.0)
    monkeypatch.setattr(sampling, "FOR_EACH_GROUP", 0.5)
    rule = rules_for(LinearRegression(), LogisticRegression(), DPStandardScaler())
    always, rarely = pytest.mark.sample(always=True), pytest.mark.sample(every=2)
    others = [
        Item("long"),
        Item("theorem", [pytest.mark.theorem]),
        Item("always", [always]),
        Item("quick"),
        Item("rarely", [rarely]),
    ]
    seconds = {"rule": 1.0, "long": 1.6, "theorem": 100.0, "always": 100.0, "quick": 1.5, "rarely": 1.5}
    sample = chosen([*rule, *others], seconds)
    # 2.5 s for three classes.
    assert sum(test.startswith("rule") for test in sample) == 2
    assert sample & {item.nodeid for item in others} == {"theorem", "always", "quick"}
    # Tests of other functions, and their order, do not matter.
    assert chosen([*others[::-1], *rule[::-1]], seconds) == sample
    assert chosen(rule, seconds) == {test for test in sample if test.startswith("rule")}


def test_the_table_is_renewed(tmp_path):
    path = tmp_path / "seconds.txt"
    cpu_time.write_seconds({"f": (3.0, 2), "g": (1.0, 1), "quick": (0.01, 1)}, path)
    cpu_time.write_seconds({"g": (1.0, 4)}, path)
    assert sampling.read_seconds(path) == {"f": 1.5, "g": 0.25}
