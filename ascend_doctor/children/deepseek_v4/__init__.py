"""The architecture of DeepSeek-V4 in plain torch, at any size: one module a part, no weights of anybody.

Sources: transformers 5.24.0 models/deepseek_v4, which it agrees with number by number (tests/test_reference_model.py),
and the configurations of DeepSeek-V4-Pro and -Flash. ``config`` and ``shapes`` need no torch. Nothing is imported here.
"""
