"""What the API server counts about itself, in Prometheus' text form, under kube-apiserver's names."""

from collections import Counter
from typing import NamedTuple

from mooring.kubeapi.store.store import Store


class Asked(NamedTuple):
    verb: str
    group: str
    version: str
    resource: str
    subresource: str
    code: int


def _escaped(value: object) -> str:
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Metrics:
    """Requests by what they asked for and how they were answered."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._requests: Counter[Asked] = Counter()

    def note(self, asked: Asked) -> None:
        self._requests[asked] += 1

    def text(self) -> bytes:
        lines = [
            "# HELP apiserver_request_total Requests by verb, resource and code.",
            "# TYPE apiserver_request_total counter",
        ]
        for asked, count in sorted(self._requests.items()):
            labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in asked._asdict().items())
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        lines += [
            "# HELP apiserver_storage_objects Objects by resource.",
            "# TYPE apiserver_storage_objects gauge",
            *(
                f'apiserver_storage_objects{{resource="{_escaped(name)}"}} {len(self._store.table(name))}'
                for name in sorted(self._store.tables())
            ),
            "# HELP etcd_current_revision The revision of the last change.",
            "# TYPE etcd_current_revision gauge",
            f"etcd_current_revision {self._store.revision}",
        ]
        return ("\n".join(lines) + "\n").encode()

    def health(self) -> bytes:
        """The indicators of /metrics/slis."""
        checks = ("livez", "readyz", "healthz")
        lines = [
            "# HELP kubernetes_healthcheck Whether a health check succeeds.",
            "# TYPE kubernetes_healthcheck gauge",
            *(f'kubernetes_healthcheck{{name="ping",type="{check}"}} 1' for check in checks),
        ]
        return ("\n".join(lines) + "\n").encode()
