"""What the rules say: one module for each part of rules/, with ``load(folders)``; read when a row set asks for it."""

PARTS = (
    "cann_needs",
    "cards",
    "chips",
    "compatibility",
    "environment",
    "faults",
    "hardware",
    "import_errors",
    "kernel_signatures",
    "limits",
    "loading",
    "log_book",
    "models",
    "os_support",
    "packages",
    "profile",
    "pairs",
    "programs",
    "smoke_gates",
    "smoke_sizes",
    "torch_npu_table",
    "vllm_ascend_table",
)
"""Each is a module here with ``load(folders: Sequence[Path])``: rules/ and the user's own, in that order."""
