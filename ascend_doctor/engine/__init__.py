"""Judges: loads checks strictly, evaluates their expressions over facts and rows, and gates the findings."""
