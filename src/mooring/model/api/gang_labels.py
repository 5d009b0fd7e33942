"""The labels and annotations by which pods name a gang of Volcano or of the coscheduling plugin, and their role in it.

Operators of other jobs write them on the pods that they create.
"""

VOLCANO_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
VOLCANO_MINIMUM = "scheduling.volcano.sh/group-min-member"
VOLCANO_ROLE = "volcano.sh/task-spec"
VOLCANO_INDEX = "volcano.sh/task-index"

COSCHEDULING_GROUPS = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
)
