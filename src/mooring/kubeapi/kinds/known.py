"""What scheduling itself knows to be wrong: the checks of `model`, as errors of the API."""

from mooring.errors import ManifestError
from mooring.kubeapi.status import FieldError, Object
from mooring.model.loading.arrival import complete
from mooring.model.objects.kinds import decode, find_kind
from mooring.model.places import Place
from mooring.model.queued.checks import is_queued_job, validate_queued_job
from mooring.model.validation.objects import validate

_PLACE = Place("")


def check_known(obj: Object) -> list[FieldError]:
    """Check an object of a kind that scheduling reads; of others nothing is known."""
    kind = find_kind(obj.get("apiVersion", ""), obj.get("kind", ""))
    if kind is None:
        return []
    try:
        found = decode(obj, kind.type, _PLACE, kind.name)
        found.kind = found.kind or kind.name
        validate(found, _PLACE)
        if is_queued_job(found):
            complete(kind, found, _PLACE)
            validate_queued_job(found, _PLACE)
    except ManifestError as error:
        return [FieldError("FieldValueInvalid", error.field, f"expected {error.expected}", error.found)]
    return []
