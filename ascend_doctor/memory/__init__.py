"""The arithmetic of NPU memory: shapes, weights, caches, and the sum. Pure: no machine is asked here."""
