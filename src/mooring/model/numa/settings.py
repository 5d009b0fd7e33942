"""What of a KubeletConfiguration decides about NUMA."""

from dataclasses import dataclass, field

from mooring.model.numa.machine import Bits, Machine

MAX_NUMA_NODES = 8
"""More have to be allowed by `max-allowable-numa-nodes`: the number of sets of nodes doubles with each."""


@dataclass(frozen=True, slots=True)
class CpuOptions:
    """`cpuManagerPolicyOptions`."""

    full_pcpus_only: bool = False
    distribute_across_numa: bool = False
    align_by_socket: bool = False
    distribute_across_cores: bool = False
    strict_reservation: bool = False
    prefer_align_by_cache: bool = False

    def excluded_pair(self) -> tuple[str, str] | None:
        """Two of them that exclude each other, if both are set."""
        return next((pair for pair in EXCLUDED_PAIRS if all(getattr(self, CPU_OPTIONS[name]) for name in pair)), None)


CPU_OPTIONS = {
    "full-pcpus-only": "full_pcpus_only",
    "distribute-cpus-across-numa": "distribute_across_numa",
    "align-by-socket": "align_by_socket",
    "distribute-cpus-across-cores": "distribute_across_cores",
    "strict-cpu-reservation": "strict_reservation",
    "prefer-align-cpus-by-uncorecache": "prefer_align_by_cache",
}
"""By the names that a KubeletConfiguration has for them."""
EXCLUDED_PAIRS = (
    ("full-pcpus-only", "distribute-cpus-across-cores"),
    ("distribute-cpus-across-numa", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-cores"),
    ("prefer-align-cpus-by-uncorecache", "distribute-cpus-across-numa"),
)
"""The static policy refuses these together at its start; all other pairs go with each other."""


@dataclass(frozen=True, eq=False)
class KubeletSettings:
    """Values as in a KubeletConfiguration; like a machine, shared by many nodes and compared by identity."""

    topology_policy: str = "none"
    topology_scope: str = "container"
    prefer_closest: bool = False
    max_numa_nodes: int = MAX_NUMA_NODES
    static_cpus: bool = False
    cpu_options: CpuOptions = CpuOptions()
    names_cpu_options: bool = False
    """Whether any option is named, be it only to say that it is off."""
    reserved_cpus: Bits = 0  # by name (`reservedSystemCPUs`)
    reserved_cpu_count: int = 0  # or by number, and chosen by the CPU Manager
    static_memory: bool = False
    reserved_memory: dict[int, dict[str, int]] = field(default_factory=dict)

    def refuses_to_start(self, machine: Machine) -> str:
        """Why a kubelet with this configuration ends at its start on such a machine; nothing if it does not."""
        if self.topology_policy != "none" and len(machine.nodes) > self.max_numa_nodes:
            return f"unsupported on machines with more than {self.max_numa_nodes} NUMA Nodes"
        options = self.cpu_options
        if not self.static_cpus:
            return "cpuManagerPolicy none takes no cpuManagerPolicyOptions" if self.names_cpu_options else ""
        excluded = options.excluded_pair()
        if excluded is not None:
            return f"cpuManagerPolicyOptions {excluded[0]} and {excluded[1]} exclude each other"
        if not options.align_by_socket:
            return ""
        if self.topology_policy == "single-numa-node":
            return "align-by-socket does not go with topologyManagerPolicy single-numa-node"
        if len(machine.cpus_of_socket) > len(machine.nodes):
            return "align-by-socket does not go with more sockets than NUMA nodes"
        return ""
