"""Extenders of a KubeSchedulerConfiguration: web services that are asked about pods."""

from collections.abc import Iterator

import msgspec

from mooring.model.values.durations import parse_duration

DEFAULT_SECONDS = 30.0


class ManagedResource(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: str
    ignored_by_scheduler: bool = False


class ExtenderTls(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""


class Extender(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """One of them, as kube-scheduler has it."""

    url_prefix: str
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: int = 0
    bind_verb: str = ""
    enable_https: bool = msgspec.field(default=False, name="enableHTTPS")
    tls_config: ExtenderTls | None = None
    http_timeout: str = msgspec.field(default="30s", name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: list[ManagedResource] = []
    ignorable: bool = False

    @property
    def seconds(self) -> float:
        return parse_duration(self.http_timeout) or DEFAULT_SECONDS

    def validate(self) -> Iterator[tuple[str, str, str]]:
        if not self.url_prefix.startswith(("http://", "https://")):
            yield "urlPrefix", "a URL", f'"{self.url_prefix.rpartition("@")[2]}"'  # before it may be a password
        if self.prioritize_verb and self.weight <= 0:
            yield "weight", "1 or more with a prioritizeVerb", str(self.weight)
        if parse_duration(self.http_timeout) is None:
            yield "httpTimeout", "a duration such as 30s", f'"{self.http_timeout}"'
