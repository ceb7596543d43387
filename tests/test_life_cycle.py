"""Fits go through one life cycle. The files that open a session without it are listed here, with the reason."""

import ast
from pathlib import Path

import pytest

from skdp.release.estimator import PrivateEstimator
from skdp.release.mixin import DPEstimatorMixin
from tests.estimators import ONE_EACH, is_local

SKDP = Path(__file__).parents[1] / "skdp"

#: Files that open sessions: the life cycle, functions, and searches.
SESSIONS = {
    "release/estimator.py": "the life cycle",
    "model_selection/_evaluation.py": "a function",
    "model_selection/_search.py": "fits of other estimators",
    "preprocessing/_quantiles.py": "a function",
    "stats/_call.py": "functions",
    "local/_base.py": "each row is randomised by itself",
}

#: Estimators that define a fit of their own, by the files above.
OWN_FITS = {"DPGridSearchCV"}


@pytest.mark.sample(always=True)
def test_sessions_are_opened_by_the_life_cycle_or_where_it_is_said_why():
    opened = set()
    for path in SKDP.rglob("*.py"):
        calls = [
            node.func for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)
        ]
        if any(isinstance(call, ast.Name) and call.id == "ReleaseSession" for call in calls):
            opened.add(path.relative_to(SKDP).as_posix())
    assert opened == set(SESSIONS)


def test_estimators_inherit_the_life_cycle():
    private = [model for model in ONE_EACH if isinstance(model, DPEstimatorMixin) and not is_local(model)]
    own = {type(model).__name__ for model in private if not isinstance(model, PrivateEstimator)}
    assert own == OWN_FITS


def test_released_and_public_attributes_are_disjoint_and_declared():
    for model in ONE_EACH:
        if isinstance(model, PrivateEstimator):
            assert model._released
            assert not model._released & model._public
