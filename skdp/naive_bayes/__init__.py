"""Naive Bayes."""

from ._naive_bayes import DPNaiveBayes

__all__ = ["DPNaiveBayes"]
