"""Each release cites a theorem of the user guide, and the guide holds it."""

import re
from pathlib import Path

import pytest

from skdp.release.session import PAGES, Theorem
from tests.estimators import VARIANTS, columns_up_to, declared, is_local, name_of

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide"


@pytest.mark.parametrize("estimator", VARIANTS, ids=name_of)
def test_releases_cite_theorems_of_the_guide(estimator):
    plan = declared(estimator).privacy_plan(n_features=columns_up_to(estimator, 5))
    assert plan.releases or is_local(estimator)
    for release in plan.releases:
        page = (GUIDE / f"{release.theorem.page}.rst").read_text(encoding="utf-8")
        number = release.theorem.number
        anchor = f"{release.theorem.page.replace('_', '-')}-theorem-{number}"
        assert re.search(rf"^ *\.\. _{anchor}:\n\n *\*\*Theorem {number}\b", page, re.MULTILINE)


@pytest.mark.parametrize("page", sorted(set(PAGES.values())))
def test_theorems_of_a_page_are_numbered_and_have_anchors(page):
    text = (GUIDE / f"{page}.rst").read_text(encoding="utf-8")
    numbers = [int(n) for n in re.findall(r"^ *\*\*Theorem (\d+)", text, re.MULTILINE)]
    anchors = [int(n) for n in re.findall(rf"^ *\.\. _{page.replace('_', '-')}-theorem-(\d+):$", text, re.MULTILINE)]
    assert numbers == anchors
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_a_subject_without_a_page_is_refused():
    with pytest.raises(ValueError, match="no page of the user guide"):
        Theorem("Trees of another kind", 1)
