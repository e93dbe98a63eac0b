"""Pictures of a run as plain geometry: pure functions from its rows to what templates draw.

Figures are in the units of the drawing. What is not known is None, and is drawn as unknown, never as nothing.
"""
