"""Collective operations over ranks of one host: the launcher (standard library), a rank (torch), and who is at fault.

Nothing is judged here: rules/smoke/ranks.yaml has the gates.
"""
