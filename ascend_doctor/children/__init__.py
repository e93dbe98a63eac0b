"""Scripts that the target interpreter runs by their path: the standard library and torch, nothing of ours.

Each answers with one JSON document on file descriptor 3; host/children.py starts them.
"""
