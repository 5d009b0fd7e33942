"""Jobs and CronJobs."""

import copy
import re
from typing import ClassVar
from zoneinfo import available_timezones

from mooring.kubeapi.kinds.field_errors import (
    IMMUTABLE,
    at_least,
    immutable,
    invalid,
    not_supported,
    required,
)
from mooring.kubeapi.kinds.selectors import check_selector, is_selected
from mooring.kubeapi.kinds.standard import Standard
from mooring.kubeapi.kinds.workloads import check_template
from mooring.kubeapi.status import OMITTED, FieldError, Object

CONTROLLER_UID, JOB_NAME = "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"
_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MOST_PARALLEL = 100_000
_LONGEST_CRON_NAME = 52
"""Characters: a CronJob's Jobs have eleven more in their names, and labels at most 63."""
_CRON_FIELD = re.compile(r"(\*|[0-9a-zA-Z*?,/-]+)")
_CRON_WORDS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")


def check_job_spec(spec: Object, path: str = "spec") -> list[FieldError]:
    found = [error for name in _COUNTS for error in at_least(f"{path}.{name}", spec.get(name))]
    mode = spec.get("completionMode", "NonIndexed")
    if mode not in ("NonIndexed", "Indexed"):
        found.append(not_supported(f"{path}.completionMode", mode, ("NonIndexed", "Indexed")))
    if mode == "Indexed":
        if spec.get("completions") is None:
            found.append(required(f"{path}.completions", "when completion mode is Indexed"))
        if (spec.get("parallelism") or 0) > _MOST_PARALLEL:
            detail = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
            found.append(invalid(f"{path}.parallelism", spec["parallelism"], detail))
    else:
        for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
            if spec.get(name) is not None:
                found.append(invalid(f"{path}.{name}", spec[name], "requires indexed completion mode"))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        found.append(required(f"{path}.backoffLimitPerIndex", "when maxFailedIndexes is specified"))
    if spec.get("podFailurePolicy"):
        found += _check_failure_policy(spec["podFailurePolicy"], f"{path}.podFailurePolicy")
    found += check_template(spec.get("template") or {}, f"{path}.template")
    return found + _check_restart_policy(spec, f"{path}.template.spec.restartPolicy")


def _check_restart_policy(spec: Object, path: str) -> list[FieldError]:
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy")
    if policy in ("Always", "", None):
        return [required(path, 'valid values: "OnFailure", "Never"')]
    if policy not in ("OnFailure", "Never"):
        return [not_supported(path, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") and policy != "Never":
        return [invalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _check_failure_policy(policy: Object, path: str) -> list[FieldError]:
    found = []
    actions = ("Count", "FailIndex", "FailJob", "Ignore")
    for index, rule in enumerate(policy.get("rules") or ()):
        here = f"{path}.rules[{index}]"
        if not rule.get("action"):
            shown = ", ".join(f'"{each}"' for each in actions)
            found.append(required(f"{here}.action", f"valid values: {shown}"))
        elif rule["action"] not in actions:
            found.append(not_supported(f"{here}.action", rule["action"], actions))
        codes = rule.get("onExitCodes")
        if codes is not None and rule.get("onPodConditions"):
            found.append(invalid(here, OMITTED, "specifying both OnExitCodes and OnPodConditions is not supported"))
        if codes is None and not rule.get("onPodConditions"):
            found.append(invalid(here, OMITTED, "specifying one of OnExitCodes and OnPodConditions is required"))
        if codes is not None and not codes.get("values"):
            found.append(invalid(f"{here}.onExitCodes.values", [], "at least one value is required"))
    return found


class Jobs(Standard):
    fields_selectable: ClassVar[dict[str, tuple[str, ...]]] = {"status.successful": ("status", "succeeded")}
    immutable_fields: ClassVar[tuple[str, ...]] = (
        "spec.selector",
        "spec.completionMode",
        "spec.podFailurePolicy",
        "spec.backoffLimitPerIndex",
        "spec.managedBy",
        "spec.successPolicy",
    )

    def begin(self, obj: Object) -> None:
        """Let a Job select its pods by a label that no other has, unless its owner wants to choose."""
        spec, metadata = obj["spec"], obj["metadata"]
        if spec.get("manualSelector"):
            return
        template = spec.setdefault("template", {}).setdefault("metadata", {})
        labels = template.setdefault("labels", {})
        shares_labels = metadata.get("labels", {}) == labels
        for name in ("job-name", JOB_NAME):
            labels.setdefault(name, metadata.get("name", ""))
        for name in ("controller-uid", CONTROLLER_UID):
            labels.setdefault(name, metadata["uid"])
        if shares_labels:
            metadata["labels"] = dict(labels)
        selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
        selector.setdefault(CONTROLLER_UID, metadata["uid"])

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        if spec.get("selector") is None:
            return [required("spec.selector"), *check_job_spec(spec)]
        found = check_selector(spec["selector"]) + check_job_spec(spec)
        labels = spec["template"].get("metadata", {}).get("labels") or {}
        if not is_selected(spec["selector"], labels):
            detail = "`selector` does not match template `labels`"
            found.append(invalid("spec.template.metadata.labels", labels, detail))
        return found

    def check_update(self, new: Object, old: Object) -> list[FieldError]:
        spec, before = new["spec"], old["spec"]
        found = _check_completions(spec, before)
        template, old_template = copy.deepcopy(spec["template"]), copy.deepcopy(before["template"])
        if before.get("suspend"):
            _forget_directives(template)
            _forget_directives(old_template)
        if template != old_template:
            found.append(invalid("spec.template", spec["template"], IMMUTABLE))
        return found


def _check_completions(spec: Object, before: Object) -> list[FieldError]:
    completions = spec.get("completions")
    if spec.get("completionMode") != "Indexed":
        return immutable("spec.completions", completions, before.get("completions"))
    if completions in (None, before.get("completions")) or completions == spec.get("parallelism"):
        return []
    return [invalid("spec.completions", completions, "can only be modified in tandem with spec.parallelism")]


def _forget_directives(template: Object) -> None:
    """Drop what may still change of a Job that is suspended: where its pods may go, and what they ask for."""
    spec = template.get("spec") or {}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        spec.pop(name, None)
    affinity = spec.get("affinity") or {}
    affinity.pop("nodeAffinity", None)
    if not affinity:
        spec.pop("affinity", None)
    for name in ("labels", "annotations"):
        (template.get("metadata") or {}).pop(name, None)
    for container in (*spec.get("containers", ()), *spec.get("initContainers", ())):
        container.pop("resources", None)


class CronJobs(Standard):
    def validate(self, obj: Object) -> list[FieldError]:
        name = obj["metadata"].get("name", "")
        found = []
        if len(name) > _LONGEST_CRON_NAME:
            found.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_NAME} characters"))
        return found + super().validate(obj)

    def check(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        found = _check_schedule(spec.get("schedule") or "")
        zone = spec.get("timeZone")
        if zone is not None and zone not in available_timezones():
            found.append(invalid("spec.timeZone", zone, f"unknown time zone {zone}"))
        policies = ("Allow", "Forbid", "Replace")
        if spec.get("concurrencyPolicy") not in policies:
            found.append(not_supported("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), policies))
        for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            found += at_least(f"spec.{name}", spec.get(name))
        return found + check_job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def _check_schedule(schedule: str) -> list[FieldError]:
    if not schedule:
        return [required("spec.schedule")]
    if schedule in _CRON_WORDS or schedule.startswith("@every "):
        return []
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [invalid("spec.schedule", schedule, detail)]
    fields = schedule.split()
    if len(fields) != 5:
        detail = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        return [invalid("spec.schedule", schedule, detail)]
    wrong = next((field for field in fields if not _CRON_FIELD.fullmatch(field)), None)
    return [invalid("spec.schedule", schedule, f"failed to parse {wrong}")] if wrong else []
