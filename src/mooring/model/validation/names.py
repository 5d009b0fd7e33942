"""Names as the API server takes them: DNS subdomains for nearly all kinds, DNS labels where names become host names."""

import re

from mooring.model.api.meta import ObjectMeta
from mooring.model.loading.replicas import REPLICAS
from mooring.model.places import CLUSTER_SCOPED, show
from mooring.model.validation.terms import Subject

LONGEST_SUBDOMAIN, LONGEST_LABEL = 253, 63
DNS_LABELS = frozenset({"Namespace", "Service"})
"""The kinds whose names have no dots."""

_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL = re.compile(_PART, re.ASCII)
_SUBDOMAIN = re.compile(rf"{_PART}(\.{_PART})*", re.ASCII)


def check_names(subject: Subject, metadata: ObjectMeta, kind: str) -> None:
    """Check name and namespace of an object; of generateName, that a name could begin so."""
    if metadata.name:
        if "{" not in metadata.name or REPLICAS not in (metadata.annotations or {}):  # the names of copies follow
            _check(subject, "metadata.name", metadata.name, is_label=kind in DNS_LABELS)
    elif metadata.generate_name:
        _check(subject, "metadata.generateName", f"{metadata.generate_name}x", is_label=kind in DNS_LABELS)
    else:
        subject.refuse("metadata.name", expected="a name", found="none")
    if metadata.namespace and kind not in CLUSTER_SCOPED:
        _check(subject, "metadata.namespace", metadata.namespace, is_label=True)


def check_dns_label(subject: Subject, path: str, name: str) -> None:
    _check(subject, path, name, is_label=True)


def _check(subject: Subject, path: str, name: str, *, is_label: bool) -> None:
    form, longest = (_LABEL, LONGEST_LABEL) if is_label else (_SUBDOMAIN, LONGEST_SUBDOMAIN)
    if len(name) <= longest and form.fullmatch(name):
        return
    letters = "lower-case letters, digits and -" if is_label else "lower-case letters, digits, - and ."
    subject.refuse(path, expected=f"a DNS name of at most {longest} {letters}", found=show(name))
