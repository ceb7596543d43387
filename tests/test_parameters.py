"""The table of rules, the signature and the docstring of an estimator state the same about its parameters."""

import inspect
import re
from ast import literal_eval

import numpy as np
import pytest

from skdp.checks.params import Bounds, By, Integer, OneOf, Or, Real, check_boolean, rules_of
from tests.bad_input import SUBJECTS

CLASSES = [cls for cls in {type(subject): None for subject in SUBJECTS} if rules_of(cls)]

# Words in the docstring for a value that a rule allows.
TYPES = {Real: "float", Integer: "int", Bounds: "tuple"}


def documented(cls):
    """Return the type and the default of each parameter, as the docstring states them, by name in order."""
    section = re.search(r"Parameters\n-+\n(.*?)\n\n", inspect.getdoc(cls), re.DOTALL)[1]
    lines = re.findall(r"^(\w+) : (.*)$", section, re.MULTILINE)
    return {name: text.partition(", default=")[::2] for name, text in lines}


def parameters_of(cls):
    """Return the parameters of the constructor by name, in order."""
    return {name: p for name, p in inspect.signature(cls).parameters.items() if name != "self"}


def states(rule, text):
    """Tell whether the type in a docstring agrees with a rule."""
    if isinstance(rule, OneOf):
        return sorted(re.findall(r'"(\w+)"', text)) == sorted(rule.choices)
    if isinstance(rule, Or):
        special = f'"{rule.special}"' in text if rule.special else True
        return special and states(rule.rule, text.replace(f' or "{rule.special}"', ""))
    if rule is check_boolean:
        return text == "bool"
    return TYPES.get(type(rule), "") in text.split(" or ")[0]


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_table_signature_and_docstring_agree(cls):
    signature, docs, rules = parameters_of(cls), documented(cls), rules_of(cls)
    assert list(signature) == list(docs)
    assert set(signature) <= set(rules)
    # A table holds no rule for a parameter that its class does not have.
    assert set(vars(cls).get("_parameter_rules", ())) <= set(signature)
    for name, parameter in signature.items():
        text, default = docs[name]
        assert states(rules[name], text), (name, text)
        if default == "":
            assert parameter.default in (None, inspect.Parameter.empty), name
            continue
        assert (default if isinstance(parameter.default, str) else literal_eval(default)) in (
            parameter.default,
            f'"{parameter.default}"',
        ), name
        rules[name](parameter.default, name)


@pytest.mark.parametrize(
    "cls", [cls for cls in CLASSES if ".synthetic." not in cls.__module__], ids=lambda cls: cls.__name__
)
def test_parameters_that_most_people_need_come_first(cls):
    by_keyword = [name for name, p in parameters_of(cls).items() if p.kind is p.KEYWORD_ONLY]
    first = ("epsilon", "delta", "schema", "accountant", "random_state")
    names = [name for name in by_keyword if name in first]
    # What a fit cannot do without may come before.
    start = by_keyword.index(names[0]) if names else 0
    assert by_keyword[start : start + len(names)] == sorted(names, key=first.index)
    assert set(by_keyword[:start]) <= {"public_X", "n_iter"}
    assert "verbose" not in by_keyword[:-1]


def test_rules_refuse_what_they_should():
    for rule, value in (
        (Real(0.0, 1.0), 2.0),
        (Real(zero=True), -1.0),
        (Integer(1, 3), 4),
        (OneOf(("a", "b")), "c"),
        (Bounds("the features"), None),
    ):
        with pytest.raises(ValueError, match="bend"):
            rule(value, "bend")
    for rule, value in (
        (Real(), "1"),
        (Integer(1), 1.0),
        (Or(None, Real()), "auto"),
        (Or("auto", Real()), None),
        (Or("auto", Real()), "automatic"),
    ):
        with pytest.raises(TypeError, match="bend must be"):
            rule(value, "bend")


def test_special_values_stay_as_they_are():
    assert Or(None, Integer(1))(None, "bend") is None
    assert Or("auto", Real())("auto", "bend") == "auto"
    assert type(Or("auto", Real())(np.float32(0.5), "bend")) is float
    assert By(len)("four", "bend") == 4
