"""By which weights Koordinator divides what is left beyond the minimums of quotas."""

import msgspec

from mooring.model.api.elastic_quota import SHARED_WEIGHT, ElasticQuota
from mooring.model.api.meta import Resources
from mooring.model.values.quantity import QuantityError, parse_quantity


def shared_weight(quota: ElasticQuota) -> Resources:
    """The weights of the annotation if it has one above zero, else the quota's max."""
    try:
        weights = quota.amounts(SHARED_WEIGHT)
        if any(parse_quantity(weight) for weight in weights.values()):
            return weights
    except (msgspec.DecodeError, QuantityError, AttributeError):
        pass  # as an annotation that cannot be read counts in Koordinator
    return quota.spec.max or {}
