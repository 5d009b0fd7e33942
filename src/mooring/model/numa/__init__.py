"""NUMA: what a kubelet will do with a pod on its machine, known before it is bound there.

A kubelet admits a pod by asking its managers (devices, CPUs, memory) where each container could be, merging their
hints by its topology policy, and letting each take what it needs. All of it depends on nothing but the machine, the
kubelet's configuration, what is taken, and the pod: so it can be computed here, exactly.

- `machine`: cores, sockets, caches, memory and devices by NUMA node; sets of them are integers, a bit each
- `settings`: the fields of a KubeletConfiguration that decide
- `ask`: what a pod asks of the managers, container by container
- `hints`: the Topology Manager: merging hints, and which merged hint is refused
- `cpus`, `memory`, `devices`: the three managers
- `zones`: a NodeResourceTopology; `documents`, `nodes`: how machines and settings are written down
- `kubelet`: admission of a pod, and what is given back when one leaves
"""
