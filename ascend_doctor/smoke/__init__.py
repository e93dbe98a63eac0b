"""Smoke runs: what is to be run where, whether that hurts nobody, and the children that do it (DESIGN section 4)."""
