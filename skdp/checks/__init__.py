"""Validation of parameters and data, without disclosing values."""
