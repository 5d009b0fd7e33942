"""Devices of nodes, in one model: what there is, what it is like, what it can be cut into, and where it sits.

A `Device` has attributes (model, NUMA node, PCIe root, NVLink island), capacities (memory, cores), counters that it
draws on together with others, and taints. Devices stand in a `Pool`, the pools that a node can reach make up its
`Inventory`. How the ways of asking for devices fit in:

- claims (resource.k8s.io): a pool for each that ResourceSlices publish (`slices.py`); a claim takes devices whole, or
  amounts of a device that allows multiple allocations.
- MIG: a GPU's memory and compute slices are counters of a counter set, and each profile at each placement is a device
  that consumes some of them, which is also how DRA drivers publish them.
- cards with cores and memory (vGPU, fractions): a device with two capacities and a number of slots that allows multiple
  allocations; what a pod takes are amounts of each.

What is taken of devices, and by whom, is in `mooring.state.devices`.
"""
