"""When a pod last saved its workload: an annotation that training code, or whoever runs it, keeps up to date."""

from mooring.model.api.meta import ObjectMeta, timestamp_seconds
from mooring.model.places import show
from mooring.model.validation.terms import Subject

LAST_CHECKPOINT = "mooring.dev/last-checkpoint"


def check_checkpoint(subject: Subject, path: str, metadata: ObjectMeta) -> None:
    text = (metadata.annotations or {}).get(LAST_CHECKPOINT)
    if text is not None and timestamp_seconds(text) is None:
        expected = "a time such as 2026-01-31T09:30:00Z"
        subject.refuse(f"{path}.{LAST_CHECKPOINT}", expected=expected, found=show(text))
