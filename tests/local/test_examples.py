"""The examples in the docstrings give what they say."""

import doctest
import importlib
import pkgutil

import pytest

from skdp import local

MODULES = [f"{local.__name__}.{module.name}" for module in pkgutil.iter_modules(local.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_class_has_one():
    modules = [importlib.import_module(name) for name in MODULES]
    found = {test.name.rsplit(".", 1)[-1] for module in modules for test in doctest.DocTestFinder().find(module)}
    assert set(local.__all__) <= found
