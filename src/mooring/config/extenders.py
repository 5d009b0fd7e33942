"""Extenders of a KubeSchedulerConfiguration: web services that are asked about pods."""

import binascii
from base64 import b64decode
from collections.abc import Iterator

import msgspec

from mooring.model.values.durations import parse_duration

DEFAULT_SECONDS = 30.0


class ManagedResource(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: str
    ignored_by_scheduler: bool = False
    """Whether nodes are taken to have it, whatever they say: the extender alone decides."""


class ExtenderTls(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: str = ""
    """As base64 of what would be in the file, before which it comes; so have the other two it."""
    key_data: str = ""
    ca_data: str = ""

    def validate(self) -> Iterator[tuple[str, str, str]]:
        for name, data in (("certData", self.cert_data), ("keyData", self.key_data), ("caData", self.ca_data)):
            try:
                pem(data)
            except (binascii.Error, ValueError):  # what is found is not said: it may be a key
                yield f"tlsConfig.{name}", "base64 of a file in PEM form", "something else"


def pem(data: str) -> str:
    """What base64 stands for."""
    return b64decode("".join(data.split()), validate=True).decode("ascii")


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
        if self.tls_config is not None:
            yield from self.tls_config.validate()
