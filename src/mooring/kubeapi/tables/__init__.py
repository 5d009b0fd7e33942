"""What `kubectl get` shows: tables of objects."""

from mooring.kubeapi.tables.tables import Tables

__all__ = ["Tables"]
