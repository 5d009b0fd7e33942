"""CustomResourceDefinitions: kinds that people add while the server runs."""

from mooring.kubeapi.definitions.definitions import Definitions

__all__ = ["Definitions"]
