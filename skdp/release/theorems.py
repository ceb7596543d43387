"""The theorems of the user guide about releases."""

from __future__ import annotations

from dataclasses import dataclass

#: Page of the user guide for each subject; theorem n of a page has the anchor "<page>-theorem-<n>".
PAGES = {
    "Additive models": "additive",
    "Exponential mechanism": "erm",
    "Functional mechanism": "functional_mechanism",
    "Gradient descent": "gradient_descent",
    "Histograms": "histograms",
    "k-means": "kmeans",
    "Local privacy": "local",
    "Model selection": "model_selection",
    "Naive Bayes": "naive_bayes",
    "Neural networks": "neural_network",
    "Objective perturbation": "objective_perturbation_proof",
    "Output perturbation": "output_perturbation",
    "PATE": "pate",
    "PCA": "pca",
    "Preprocessing": "preprocessing",
    "Regression": "regression",
    "Sample and aggregate": "sample_aggregate",
    "Statistics": "statistics",
    "Trees": "trees",
    "Units": "units",
}


@dataclass(frozen=True)
class Theorem:
    """A theorem of the user guide."""

    subject: str
    number: int

    def __post_init__(self) -> None:
        if self.subject not in PAGES:
            raise ValueError(f"no page of the user guide is about {self.subject!r}")

    @property
    def page(self) -> str:
        return PAGES[self.subject]

    @property
    def anchor(self) -> str:
        """Label of the theorem on its page."""
        return f"{self.page.replace('_', '-')}-theorem-{self.number}"

    def __str__(self) -> str:
        return f"{self.subject}, theorem {self.number}"
