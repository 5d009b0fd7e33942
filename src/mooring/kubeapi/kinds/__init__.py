"""The rules of each resource: defaults, what creation and updates do, and checks in Kubernetes' words."""

from mooring.kubeapi.kinds.table import Kinds

__all__ = ["Kinds"]
