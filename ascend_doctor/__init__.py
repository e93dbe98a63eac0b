"""ascend-doctor: tells whether an Ascend NPU server can run a deployment, why not, and what to type."""

__version__ = "0.1.0"
