"""Set-up that must precede the import of SciPy, and the hooks of the test run."""

import os

# scikit-learn skips one of its checks without it.
os.environ.setdefault("SCIPY_ARRAY_API", "1")

from unittest.mock import patch

import pytest

from skdp.checks import silence
from tests import cpu_time, noise, sampling

_HOOKS = (sampling.Plugin, noise.Plugin, cpu_time.Plugin)


def pytest_addoption(parser):
    sampling.add_options(parser)
    cpu_time.add_options(parser)


def pytest_configure(config):
    for hooks in _HOOKS:
        config.pluginmanager.register(hooks(config), hooks.__module__)


@pytest.fixture(scope="module")
def notes_of_modules_are_left():
    """Silence puts back what all modules note about warnings, which takes longer than many a fit."""
    with patch.object(silence, "_namespaces", list):
        yield
