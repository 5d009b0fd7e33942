"""The forms of traces that simulations read, by the name that a scenario gives as `format`."""

from mooring.drivers.sim.arrival import TraceFormat
from mooring.drivers.sim.traces.alibaba_gpu_2023 import ALIBABA_GPU_2023
from mooring.drivers.sim.traces.jobs_csv import JOBS_CSV

TRACES: dict[str, TraceFormat] = {
    "alibaba-gpu-2023": ALIBABA_GPU_2023,
    "jobs": JOBS_CSV,
}
