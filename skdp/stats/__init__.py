"""Differentially private statistics with confidence intervals. They use the same privacy budgets as models."""

from ..release.estimates import Estimate
from ._describe import Description, describe
from ._descriptive import count, group_by, mean, std, sum, var
from ._moments import correlation, covariance, linear_trend
from ._quantiles import median, min_max, quantile
from ._tables import contingency, ecdf, histogram, histogramdd, proportion, value_counts
from ._tests import TestResult, chi2_contingency, mannwhitneyu, ttest_ind

__all__ = [
    "Description",
    "Estimate",
    "TestResult",
    "chi2_contingency",
    "contingency",
    "correlation",
    "count",
    "covariance",
    "describe",
    "ecdf",
    "group_by",
    "histogram",
    "histogramdd",
    "linear_trend",
    "mannwhitneyu",
    "mean",
    "median",
    "min_max",
    "proportion",
    "quantile",
    "std",
    "sum",
    "ttest_ind",
    "value_counts",
    "var",
]
