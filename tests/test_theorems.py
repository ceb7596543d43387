"""Each release cites a theorem of the user guide, and the guide holds it."""

import re
from pathlib import Path

import pytest

from skdp.release.counts import ENTRIES, WORST, entries_releases
from skdp.release.session import PAGES, Theorem
from tests.estimators import VARIANTS, columns_up_to, declared, is_local, name_of

GUIDE = Path(__file__).parents[1] / "docs" / "user_guide"


@pytest.mark.parametrize("estimator", VARIANTS, ids=name_of)
def test_releases_cite_theorems_of_the_guide(estimator):
    plan = declared(estimator).privacy_plan(n_features=columns_up_to(estimator, 5))
    assert plan.releases or is_local(estimator)
    assert all(is_in_guide(release.theorem) for release in plan.releases)


def text_of(page):
    """Return the text of a page of the guide, and of the page with its algorithm or theory, which has the proofs."""
    names = [f"{page}{suffix}.rst" for suffix in ("", "_algorithm", "_theory")]
    return "".join((GUIDE / name).read_text(encoding="utf-8") for name in names if (GUIDE / name).is_file())


def is_in_guide(theorem):
    """Tell whether the statement stands in the guide, under the anchor that links to it have."""
    page = text_of(theorem.page)
    anchor = f"{theorem.page.replace('_', '-')}-{theorem.kind}-{theorem.number}"
    title = rf"{theorem.kind.capitalize()} {theorem.number}"
    return re.search(rf"^ *\.\. _{anchor}:\n\n *\*\*{title}\b", page, re.MULTILINE) is not None


@pytest.mark.parametrize(
    ("n_columns", "delta", "cited"),
    [
        (1, 0.0, {ENTRIES: "Units, corollary 3"}),
        (2, 0.0, {ENTRIES: "Units, corollary 3", WORST: "Units, corollary 3"}),
        (2, 1e-6, {ENTRIES: "Units, theorem 1"}),
    ],
)
def test_the_largest_number_of_undeclared_entries_cites_its_corollary(n_columns, delta, cited):
    releases = [release for release, _ in entries_releases([0.5] * n_columns, 0.02, 1.0, delta)]
    assert {release.label: str(release.theorem) for release in releases} == cited
    assert all(is_in_guide(release.theorem) for release in releases)
    assert not is_in_guide(Theorem("Units", 9, "corollary"))


@pytest.mark.parametrize("page", sorted(set(PAGES.values())))
def test_theorems_of_a_page_are_numbered_and_have_anchors(page):
    text = text_of(page)
    numbers = [int(n) for n in re.findall(r"^ *\*\*Theorem (\d+)", text, re.MULTILINE)]
    anchors = [int(n) for n in re.findall(rf"^ *\.\. _{page.replace('_', '-')}-theorem-(\d+):$", text, re.MULTILINE)]
    assert numbers == anchors
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


def test_a_subject_without_a_page_is_refused():
    with pytest.raises(ValueError, match="no page of the user guide"):
        Theorem("Trees of another kind", 1)
