"""In which form a client wants its answer: JSON or YAML; the object, a Table, or the metadata alone."""

from functools import lru_cache
from typing import NamedTuple

from mooring.kubeapi.http.protobuf import MEDIA_TYPE
from mooring.kubeapi.status import bad_request, not_acceptable, unsupported_media_type

JSON, YAML = "application/json", "application/yaml"
SERVED = (JSON, YAML)
PROTOBUF = MEDIA_TYPE
"""Read, never written."""
PATCH_TYPES = {
    "application/json-patch+json": "json",
    "application/merge-patch+json": "merge",
    "application/strategic-merge-patch+json": "strategic",
    "application/apply-patch+yaml": "apply",
}
_CONVERTED = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class Form(NamedTuple):
    """What an answer looks like."""

    media_type: str = JSON
    kind: str = ""
    """"" for the object itself, or Table, or PartialObjectMetadata."""
    api_version: str = ""
    """Of a Table or PartialObjectMetadata."""


@lru_cache(maxsize=1024)
def choose_form(accept: str, *, as_tables: bool = True) -> Form:
    """The first form of an Accept header that we have; 406 if there is none."""
    for offer in _offers(accept):
        media_type, parameters = offer
        if media_type in ("*/*", "application/*", PROTOBUF):
            media_type = JSON  # who asks for protobuf goes by the Content-Type of the answer, and has JSON too
        if media_type not in SERVED:
            continue
        kind = parameters.get("as", "")
        if not kind:
            return Form(media_type)
        group, version = parameters.get("g", ""), parameters.get("v", "")
        if kind not in _CONVERTED or group != "meta.k8s.io" or version not in ("v1", "v1beta1") or not as_tables:
            continue
        return Form(media_type, kind.removesuffix("List"), f"{group}/{version}")
    raise not_acceptable(SERVED)


def _offers(accept: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of a header, most wanted first."""
    found = []
    for index, part in enumerate((accept or "*/*").split(",")):
        media_type, *rest = (word.strip() for word in part.split(";"))
        parameters = dict(word.partition("=")[::2] for word in rest if "=" in word)
        try:
            quality = float(parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        found.append((-quality, index, media_type.lower(), parameters))
    return [(media_type, parameters) for _, _, media_type, parameters in sorted(found, key=lambda each: each[:2])]


def body_type(content_type: str) -> str:
    """The media type of a body that is an object; 415 if it is none of ours."""
    media_type = content_type.partition(";")[0].strip().lower() or JSON
    if media_type not in (*SERVED, PROTOBUF):
        raise unsupported_media_type((*SERVED, PROTOBUF))
    return media_type


def patch_type(content_type: str, *, is_custom: bool) -> str:
    """Which kind of patch a body is; 415 if none of ours, as a strategic one is of a custom resource."""
    media_type = content_type.partition(";")[0].strip().lower()
    found = PATCH_TYPES.get(media_type)
    if found is None or (found == "strategic" and is_custom):
        supported = [each for each, name in PATCH_TYPES.items() if not (is_custom and name == "strategic")]
        raise unsupported_media_type(supported)
    return found


def check_dry_run(values: list[str]) -> bool:
    """Whether a request is to change nothing; 400 for words other than All."""
    if any(value != "All" for value in values if value):
        raise bad_request(f'invalid dryRun value {values}: the only valid value is "All"')
    return "All" in values
