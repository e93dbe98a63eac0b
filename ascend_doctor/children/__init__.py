"""Scripts that the target interpreter runs by their path: the standard library and torch, nothing of ours.

They answer on file descriptor 3, with one JSON document or a JSON line for each step; host/children.py starts them.
"""
