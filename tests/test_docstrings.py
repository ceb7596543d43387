"""The examples in the docstrings give what they say, and what the reference names has one."""

import doctest
import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import skdp

# Importing __main__ would run the command line.
BELOW = [module.name for module in pkgutil.walk_packages(skdp.__path__, "skdp.") if "__main__" not in module.name]
MODULES = ["skdp", *sorted(BELOW)]
REFERENCE = Path(__file__).parents[1] / "docs" / "api.rst"
# What a user is handed, and does not make; the function or method that gives it shows it.
SHOWN_ELSEWHERE = {"EpsilonAudit", "Evaluation", "LargestChange", "OneRunAudit", "Part", "Parts", "Record"}
SHOWN_ELSEWHERE |= {"RecordedRelease", "TRUSTED_TYPES"}


def referenced():
    """Give what the reference lists, but for exceptions, by the name it is imported under."""
    found = {}
    for name in re.findall(r"^   ~?([\w.]+)$", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE):
        package, _, short = f"skdp.{name}".rpartition(".")
        value = getattr(importlib.import_module(package), short)
        if short not in SHOWN_ELSEWHERE and not (isinstance(value, type) and issubclass(value, BaseException)):
            found[f"{package}.{short}"] = value
    return found


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.sample(always=True, by=lambda name: name)
@pytest.mark.parametrize("name", MODULES)
def test_examples_are_at_most_79_characters_wide(name):
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        for example in test.examples:
            lines = [*(f">>> {line}" for line in example.source.splitlines()), *example.want.splitlines()]
            assert [line for line in lines if len(line) > 79] == []


# The columns of some are declared by other parameters than a schema.
WITHOUT_SCHEMA = {"HistogramClassifier", "HistogramRegressor", "NoisyHistogram", "SampleAggregate"}


@pytest.mark.parametrize("name", sorted(referenced()))
def test_examples_of_estimators_declare_columns_by_a_schema(name):
    value = referenced()[name]
    if (
        isinstance(value, type)
        and "schema" in inspect.signature(value).parameters
        and value.__name__ not in WITHOUT_SCHEMA
    ):
        examples = inspect.getdoc(value).partition("Examples\n")[2]
        assert "Schema(" in examples or "schema=" in examples


@pytest.mark.parametrize("name", sorted(referenced()))
def test_what_the_reference_names_has_an_example(name):
    own = doctest.DocTestFinder(recurse=False).find(referenced()[name])
    assert any(test.examples for test in own), "no example"


def test_the_reference_lists_all_that_packages_of_estimators_offer():
    packages = [importlib.import_module(f"skdp.{name}") for name in set(skdp._HOME.values()) - {"accounting"}]
    listed = {name.rpartition(".")[2] for name in referenced()}
    assert {name for package in packages for name in package.__all__} <= listed | SHOWN_ELSEWHERE


def test_the_reference_is_read():
    assert {"skdp.linear_model.ObjPertLogReg", "skdp.accounting.BudgetAccountant"} <= set(referenced())
