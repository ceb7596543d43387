"""A model card: a document that accompanies a fitted model, with its guarantee in words and in numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from ..accounting import FALSE_POSITIVES, BudgetAccountant, Relation
from ..checks.silence import parts_of
from ..release.estimates import Estimate
from ..release.session import PrivacyGuarantee

#: Sections that only the authors of a model can write, with the question that each answers.
SECTIONS = {
    "Intended use": "Who may use the model, and for which decisions?",
    "Out of scope": "For which uses is the model not made?",
    "Data": "Whose records are these, from which source and time, and on which legal basis are they used?",
    "Ethical considerations": "Whom could an error harm? Are errors equally frequent for all groups of persons?",
    "Contact": "Who answers questions about this model?",
}

SCORES = "How accurate is the model, and on which records was this measured?"

#: Conditions of every guarantee, which only the data holder can check.
CONDITIONS = (
    "All bounds, categories and labels were declared from public sources, and not read from these records.",
    "All releases about these records count towards one budget.",
)

#: What stands on top of a card if the budget is about groups, and the fit about single records.
OF_GROUPS = (
    "This guarantee is for one record. A person may have several, and the budget is about all records of a "
    "person: the guarantee for a person is that of the budget."
)

# Labels with a smaller share of the records are rare.
_RARE = 0.05


def model_card(
    estimator: BaseEstimator,
    *,
    title: str | None = None,
    accountant: BudgetAccountant | None = None,
    scores: Mapping[str, object] | None = None,
    notes: Mapping[str, str] | None = None,
) -> str:
    """Write a model card for a fitted estimator.

    .. versionadded:: 0.2

    A model card describes a model to people who did not train it [2]_. This function writes the part on privacy, in
    words and in numbers, and leaves sections on use, data and contact for you.

    Parameters
    ----------
    estimator : estimator
        A fitted estimator of skdp. After a search, pass the search, whose guarantee covers its choice.
    title : str, default=None
        Title of the card. If None, the name of the class.
    accountant : BudgetAccountant, default=None
        The budget of all releases about these records. If given, the card starts with its ceiling, which is the
        guarantee to state. It names no single charge.
    scores : dict of str to object, default=None
        Names of scores and their values. Use scores that were released, for instance by
        :func:`~skdp.model_selection.private_score`, because a card is public.
    notes : dict of str to str, default=None
        Texts of the sections "Intended use", "Out of scope", "Data", "Ethical considerations" and "Contact", and of
        other sections that you add. Sections without a text hold a question.

    Returns
    -------
    card : str
        Markdown.

    Raises
    ------
    NotFittedError
        If the estimator is not fitted.

    See Also
    --------
    skdp.accounting.BudgetAccountant.to_text : The ledger as text.

    Notes
    -----
    **Privacy.** The card holds the parameters and the guarantee of the fit, the ceiling of the budget, and your text.
    All but your text is public. Therefore the card uses nothing of the budget.

    Of guesses between two neighbouring data sets that are equally likely, at most a share of :math:`(1 + \\delta(0))/2`
    is right, where :math:`\\delta(\\varepsilon)` is the curve of the releases together. A test of level :math:`f` has a
    power of at most :math:`\\min(e^\\varepsilon f + \\delta(\\varepsilon), 1 - e^{-\\varepsilon} (1 -
    \\delta(\\varepsilon) - f))` for each :math:`\\varepsilon` [1]_. The curve is the smallest of those of the pair, of
    Gaussian DP [3]_, and of the privacy losses.

    References
    ----------
    .. [1] P. Kairouz, S. Oh and P. Viswanath (2015). The composition theorem for differential privacy. ICML.
    .. [2] M. Mitchell et al. (2019). Model cards for model reporting. FAT*.
    .. [3] J. Dong, A. Roth and W. J. Su (2022). Gaussian differential privacy. JRSS B.

    Examples
    --------
    >>> from skdp import DPNaiveBayes, Number, Schema
    >>> from skdp.inspection import model_card
    >>> schema = Schema({"age": Number(18, 95)}, target={"repaid": ["no", "yes"]})
    >>> table = schema.sample(1000)
    >>> model = DPNaiveBayes(schema=schema, epsilon=0.5).fit(
    ...     table, table["repaid"]
    ... )
    >>> card = model_card(
    ...     model, title="Repayment", notes={"Contact": "data@bank.example"}
    ... )
    >>> print(card.splitlines()[2].partition(", add")[0])
    This model is (epsilon=0.5, delta=0)-differentially private
    """
    guarantee = getattr(estimator, "privacy_", None)
    if not isinstance(guarantee, PrivacyGuarantee):
        raise NotFittedError(
            f"{type(estimator).__name__} has no guarantee. Pass an estimator of skdp after its fit. For a pipeline, "
            "use make_private_pipeline, or pass a private step and state all of them."
        )
    notes = dict(notes or {})
    first, *implied = guarantee._lines()
    promise = " ".join([f"This model is {first}.", *(f"This {line}." for line in implied[:-1])])
    if guarantee.epsilon == math.inf:
        promise = "**This model is not private** (epsilon=inf): it was fitted without noise."
    lines = [f"# {title or type(estimator).__name__}", ""]
    if accountant is not None:
        together, replaced = accountant._statement()
        lines += [
            f"All releases about these records, also later ones, are together (epsilon={accountant.epsilon:g}, "
            f"delta={accountant.delta:g})-differentially private, per {accountant.unit}: "
            f"{together}. This {replaced}. The numbers below are smaller, because they are about this model alone, "
            "whose noise is known.",
            "",
        ]
    lines += [promise, ""]
    of_groups = accountant is not None and accountant.unit == "group" and guarantee.unit != "group"
    if of_groups:
        lines += [f"**{OF_GROUPS}**", ""]
    # The steps of a pipeline draw noise of their own. In other estimators, the outer seed determines all noise.
    steps = parts_of(estimator) if isinstance(estimator, Pipeline) else [estimator]
    seeded = any(getattr(step, "random_state", None) is not None for step in steps if hasattr(step, "accountant"))
    lines += ["## Model", "", *_model(estimator), "", "## Privacy", "", *_risk(guarantee, seeded, of_groups), ""]
    lines += _releases(guarantee)
    if guarantee.epsilon < math.inf:
        lines += ["", "## What is not protected", "", *_not_protected(estimator, guarantee)]
    lines += ["", "## Scores", ""]
    given = [f"- {name}:{_score(value)}" for name, value in (scores or {}).items()]
    if "Scores" in notes:
        given.append(notes.pop("Scores"))
    lines += given or [f"_{SCORES}_"]
    for heading, question in SECTIONS.items():
        lines += ["", f"## {heading}", "", notes.pop(heading, f"_{question}_")]
    for heading, text in notes.items():
        lines += ["", f"## {heading}", "", text]
    return "\n".join(lines) + "\n"


def _score(value: object) -> str:
    """Write a score after its name: in one line, with its interval and guarantee if it has them, or as a block."""
    if not isinstance(value, Estimate) or np.ndim(value.value):
        text = str(value)
        return f"\n\n```text\n{text}\n```\n" if "\n" in text else f" {text}"
    low, high = value.confidence_interval()
    cost = value.privacy_
    return (
        f" {float(value):.4g} (95 % interval from {low:.4g} to {high:.4g}, standard error of the noise "
        f"{value.standard_error:.2g}, released with epsilon={cost.epsilon:g} and delta={cost.delta:g})"
    )


def _model(estimator: BaseEstimator) -> list[str]:
    schemas = [schema for part in parts_of(estimator) if (schema := getattr(part, "schema", None)) is not None]
    public = clone(estimator)
    hidden = [name for name in public.get_params() if name.split("__")[-1] in ("accountant", "random_state", "schema")]
    public.set_params(**dict.fromkeys(hidden))
    lines = [
        f"- Made with: skdp {import_module('skdp').__version__}, on {date.today().isoformat()}",
        f"- Parameters: `{' '.join(repr(public).split())}`",
    ]
    for heading, name in (("Columns", "feature_names_in_"), ("Labels", "classes_")):
        if (values := getattr(estimator, name, None)) is not None:
            if name == "classes_" and any(map(_reads_labels, parts_of(estimator))):
                lines.append("- Labels: read from the records, and not listed here")
                continue
            lines.append(f"- {heading}: {', '.join(map(str, values))}")
            if name == "classes_":
                lines += _rare_labels(estimator)
    if names := getattr(estimator, "biased_means_", None):
        lines.append(
            f"- Means of synthetic numbers: noise in empty bins can bias those of {', '.join(names)}. Do not use these "
            "means. Release them with skdp.stats, or declare narrower bounds."
        )
    for text in dict.fromkeys(map(repr, schemas)):
        lines += ["", "```text", text, "```"]
    return lines


def _reads_labels(part: Any) -> bool:
    """Tell whether the labels of an estimator are those of the records, because none were declared."""
    return "classes" in part.get_params(deep=False) and hasattr(part, "_declared") and part._declared("classes") is None


def _rare_labels(estimator: BaseEstimator) -> list[str]:
    """Name labels with few records, by the released shares of labels, if there are any."""
    shares = getattr(estimator, "class_prior_", None)
    if shares is None or getattr(estimator, "class_weight", None) is not None:
        return []
    labels = zip(estimator.classes_, shares, strict=True)
    rare = ", ".join(f"{label} ({_percent(share)} %)" for label, share in labels if share < _RARE)
    sentence = (
        f"- Rare labels, by released shares of records: {rare}. The overall accuracy hardly depends on them. Look at "
        'the recall of each label. With `class_weight="balanced"`, rare labels have more weight.'
    )
    return [sentence] if rare else []


def _risk(guarantee: PrivacyGuarantee, seeded: bool, of_groups: bool) -> list[str]:
    """Describe what the numbers mean for one person."""
    if guarantee.epsilon == math.inf:
        return ["Somebody who has the model may be able to reconstruct single records."]
    groups = guarantee.unit == "group"
    whose = "the records of one person" if groups else "one record"
    changed = f"after {whose} was replaced" if guarantee.relation is Relation.REPLACE_RECORD else f"without {whose}"
    bounds = guarantee.attack()
    powers = [
        f"- true positives at most {_percent(power)} %, if false positives are at most {100 * level:g} %"
        for level, power in zip(FALSE_POSITIVES, bounds.true_positives, strict=True)
    ]
    lines = [
        f"The guarantee compares this model with a model that is fitted {changed}. Suppose that somebody knows the "
        "program, its parameters and all other records, and guesses from the model which of the two tables it was "
        f"fitted to. If both tables are equally likely, at most {_percent(bounds.right)} % of such guesses are right. "
        f"Such an attack has an advantage of at most {_percent(bounds.advantage)} %, which is its rate of true "
        "positives minus that of false positives. Its rates have these bounds:",
        "",
        *powers,
        "",
        "The guarantee holds under these conditions:",
        "",
        *(f"- {condition}" for condition in CONDITIONS),
    ]
    if not of_groups:
        lines.append(
            "- All records of a person are in one group."
            if groups
            else "- A person has one record. For a person with more, the guarantee holds for each record by itself."
        )
    if seeded:
        lines.append("- The noise was drawn with a `random_state`. A person who knows it can remove the noise.")
    return lines


def _not_protected(estimator: BaseEstimator, guarantee: PrivacyGuarantee) -> list[str]:
    """Name what the guarantee of a model does not hide."""
    parts = list(parts_of(estimator))
    public = ["the parameters", "the names of columns"]
    public += ["the schema"] * any(getattr(part, "schema", None) is not None for part in parts)
    public += ["which labels occur"] * any(map(_reads_labels, parts))
    public += ["the number of records"] * (guarantee.relation is Relation.REPLACE_RECORD)
    return [
        f"- Public facts: {', '.join(public)}.",
        "- Facts about many people. They may tell a value of a person, whether or not this person is in the data.",
        "- Predictions for the people in the data, because a prediction is computed from the row of the person.",
        "- Choices made from these records without a release, such as the best of many fits that no budget records.",
        "- The time and the memory of the fit, and files that hold the records.",
    ]


def _percent(share: float) -> str:
    """Return a share in per cent, rounded up to one digit after the point, or to two digits."""
    digits = 1 - min(math.floor(math.log10(max(share, 1e-9))) + 2, 0)
    return f"{min(math.ceil(share * 10 ** (2 + digits) - 1e-9) / 10**digits, 100.0):g}"


def _releases(guarantee: PrivacyGuarantee) -> list[str]:
    lines = ["| release | mechanism | sensitivity | noise scale | theorem |", "|---|---|---|---|---|"]
    for release in guarantee.releases:
        mechanism, norm = release.mechanism.name, release.mechanism.norm
        lines.append(
            f"| {release.label} | {mechanism} | {release.sensitivity:.6g} ({norm}) | {release.mechanism.scale:.6g} "
            f"| {guarantee._cited(release)} |"
        )
    return [*lines, *("" for _ in guarantee.fits[:1]), *(f"- {line}" for line in guarantee.fits)]
