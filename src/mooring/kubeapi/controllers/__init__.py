"""The workload controllers of the embedded control plane, in process: one file a controller, listed in `manager.py`."""
