"""Questions about who someone is and what they may do, asked by creating an object that comes back with its answer."""

from collections.abc import Callable

from mooring.kubeapi.auth.rbac import Attempt, Rbac
from mooring.kubeapi.auth.tokens import ISSUER, Tokens
from mooring.kubeapi.auth.user import User
from mooring.kubeapi.metadata import timestamp
from mooring.kubeapi.status import FieldError, Object, bad_request, invalid

AUTHENTICATION, AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"


class Reviews:
    """Answers the kinds of authentication.k8s.io and authorization.k8s.io."""

    def __init__(self, rbac: Rbac, tokens: Tokens) -> None:
        self._rbac, self._tokens = rbac, tokens
        self._answers: dict[str, Callable[[User, Object, str], Object]] = {
            f"selfsubjectreviews.{AUTHENTICATION}": self._who_am_i,
            f"tokenreviews.{AUTHENTICATION}": self._whose_token,
            f"selfsubjectaccessreviews.{AUTHORIZATION}": self._may_i,
            f"subjectaccessreviews.{AUTHORIZATION}": self._may_they,
            f"localsubjectaccessreviews.{AUTHORIZATION}": self._may_they,
            f"selfsubjectrulesreviews.{AUTHORIZATION}": self._what_may_i,
        }

    def answers(self, key: str) -> bool:
        return key in self._answers

    def answer(self, key: str, user: User, obj: Object, namespace: str) -> Object:
        """The object with its status; `namespace` is that of the path."""
        status = self._answers[key](user, obj, namespace)
        return {**obj, "metadata": {**(obj.get("metadata") or {}), "creationTimestamp": timestamp()}, "status": status}

    def _who_am_i(self, user: User, obj: Object, namespace: str) -> Object:
        return {"userInfo": _user_info(user)}

    def _whose_token(self, user: User, obj: Object, namespace: str) -> Object:
        spec = obj.get("spec") or {}
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        audiences = spec.get("audiences") or []
        found = self._tokens.user_of(spec["token"], tuple(audiences) or (ISSUER,))
        if found is None:
            return {"authenticated": False, "user": {}, "error": "[invalid bearer token, Token has been invalidated]"}
        return {"authenticated": True, "user": _user_info(found), "audiences": audiences or [ISSUER]}

    def _may_i(self, user: User, obj: Object, namespace: str) -> Object:
        return self._verdict(user, obj, "SelfSubjectAccessReview")

    def _may_they(self, user: User, obj: Object, namespace: str) -> Object:
        spec = obj.get("spec") or {}
        if not spec.get("user") and not spec.get("groups"):
            error = FieldError("FieldValueRequired", "spec.user", "at least one of user or group must be specified")
            raise invalid(AUTHORIZATION, "SubjectAccessReview", "", [error])
        asked = (spec.get("resourceAttributes") or {}).get("namespace", "")
        if namespace and asked != namespace:
            detail = f"must match metadata.namespace: {namespace}"
            error = FieldError("FieldValueInvalid", "spec.resourceAttributes.namespace", detail, asked)
            raise invalid(AUTHORIZATION, "LocalSubjectAccessReview", "", [error])
        them = User(spec.get("user") or "", tuple(spec.get("groups") or ()), spec.get("uid") or "")
        return self._verdict(them, obj, "SubjectAccessReview")

    def _verdict(self, user: User, obj: Object, kind: str) -> Object:
        spec = obj.get("spec") or {}
        about, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if (about is None) == (path is None):
            detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
            value = {"resourceAttributes": about, "nonResourceAttributes": path}
            error = FieldError("FieldValueInvalid", "spec.resourceAttributes", detail, value)
            raise invalid(AUTHORIZATION, kind, "", [error])
        if about is not None:
            attempt = Attempt(
                about.get("verb", ""),
                about.get("group", ""),
                about.get("resource", ""),
                about.get("subresource", ""),
                about.get("namespace", ""),
                about.get("name", ""),
            )
        else:
            asked: Object = path or {}
            attempt = Attempt(asked.get("verb", ""), path=asked.get("path") or "/")
        is_allowed = self._rbac.allows(user, attempt)
        return {"allowed": True, "reason": "RBAC: allowed"} if is_allowed else {"allowed": False}

    def _what_may_i(self, user: User, obj: Object, namespace: str) -> Object:
        asked = (obj.get("spec") or {}).get("namespace", "")
        if not asked:
            raise bad_request("no namespace on request")
        resource_rules, path_rules = [], []
        if user.is_master:
            resource_rules.append({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
            path_rules.append({"verbs": ["*"], "nonResourceURLs": ["*"]})
        for rule in self._rbac.rules(user, asked):
            written = rule.source
            if rule.paths:
                path_rule = {"verbs": written["verbs"], "nonResourceURLs": written["nonResourceURLs"]}
                path_rules += [path_rule] if path_rule not in path_rules else []
            else:
                kept = ("verbs", "apiGroups", "resources", "resourceNames")
                resource_rules.append({key: written[key] for key in kept if key in written})
        return {"resourceRules": resource_rules, "nonResourceRules": path_rules, "incomplete": False}


def _user_info(user: User) -> Object:
    info: Object = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        info["uid"] = user.uid
    if user.extra:
        info["extra"] = user.extra
    return info
