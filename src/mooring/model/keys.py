"""What pods, gangs and workloads are known by, each a type of its own: the key of one does not pass for another's.

Events and decisions have them as plain text, as whoever speaks with the world reads and writes it.
"""

from typing import NewType

PodKey = NewType("PodKey", str)
"""namespace/name"""
GangKey = NewType("GangKey", str)
"""Kind.group/namespace/name of what declares it"""
NO_GANG = GangKey("")
WorkloadKey = NewType("WorkloadKey", str)
"""namespace/name of a Workload"""
