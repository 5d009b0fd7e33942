"""Pods that ask for a part of a GPU, by KAI's annotations, wait: sharing GPUs is not part of this version.

Such a pod requests no resource that nodes could be short of: to place it by its requests would start it without a GPU.
"""

from mooring.engine.plugin import SKIP, Change, Depends, Mask, PreFilter, Skip
from mooring.engine.verdict import Rejection
from mooring.state.rows import NodeRows
from mooring.state.shapes import Shape
from mooring.state.views import ClusterView

GPU_SHARES = ("gpu-fraction", "gpu-fraction-num-devices", "gpu-memory")


class GpuSharing(PreFilter):
    depends_on = Depends.NODE
    helped_by = Change(0)
    skip_is_settled = True
    reads = frozenset(("annotations",))
    reads_pod_annotations = GPU_SHARES

    def pre_filter(self, pod: Shape, cluster: ClusterView) -> Rejection | Skip:
        asked = [f"{key}={value}" for key in GPU_SHARES if (value := pod.annotation(key))]
        if not asked:
            return SKIP
        parts = " ".join(asked)
        return Rejection((f"parts of GPUs are not allocated by this version: [{parts}]",), unresolvable=True)

    def filter(self, pod: Shape, nodes: NodeRows, prepared: object) -> Mask:
        raise AssertionError("a pod that asks for a part of a GPU is refused before nodes are asked")
