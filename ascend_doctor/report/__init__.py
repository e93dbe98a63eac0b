"""Renders a run: console, HTML, JSON. Nothing here judges."""
