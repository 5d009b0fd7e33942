"""Who is behind a request: by client certificate or bearer token, and perhaps acting for someone else."""

from urllib.parse import unquote

from mooring.kubeapi.auth.certificates import user_of
from mooring.kubeapi.auth.rbac import Attempt, Rbac
from mooring.kubeapi.auth.tokens import Tokens
from mooring.kubeapi.auth.user import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, User
from mooring.kubeapi.status import bad_request, unauthorized

_EXTRA = b"impersonate-extra-"
_GROUP = "authentication.k8s.io"
_NOT_WITHOUT_USER = (b"impersonate-group", b"impersonate-uid")


class Authentication:
    """Tells users by what they bring along."""

    def __init__(self, tokens: Tokens, rbac: Rbac) -> None:
        self._tokens, self._rbac = tokens, rbac
        self._by_certificate: dict[bytes, User | None] = {}

    def user(self, headers: dict[bytes, bytes], certificate: bytes | None) -> User:
        """Who asks; raises 401 for nobody we know, 403 for one who may not act as the one they name."""
        user = self._own(headers, certificate)
        if user is None:
            raise unauthorized()
        if b"impersonate-user" in headers:
            return self._impersonated(user, headers)
        if any(name in _NOT_WITHOUT_USER or _is_extra(name) for name in headers):
            raise bad_request("requested groups, uid or extras to impersonate without a user")
        return user

    def _own(self, headers: dict[bytes, bytes], certificate: bytes | None) -> User | None:
        if certificate is not None:
            if certificate not in self._by_certificate:
                self._by_certificate[certificate] = user_of(certificate)
            if (user := self._by_certificate[certificate]) is not None:
                return user
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() == "bearer" and token.strip():
            return self._tokens.user_of(token.strip())
        return None

    def _impersonated(self, user: User, headers: dict[bytes, bytes]) -> User:
        """The user that the headers name; 403 unless the caller may impersonate the name, the groups, the uid and the
        extras."""
        name = _text(headers[b"impersonate-user"])
        groups = _listed(headers.get(b"impersonate-group", b""))
        extra = {unquote(_text(key[len(_EXTRA) :])): _listed(value) for key, value in headers.items() if _is_extra(key)}
        prefix, _, account = name.partition("system:serviceaccount:")
        if not prefix and account:
            namespace, _, account = account.partition(":")
            self._rbac.check(user, Attempt("impersonate", "", "serviceaccounts", "", namespace, account))
            own_groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        else:
            self._rbac.check(user, Attempt("impersonate", "", "users", "", "", name))
            own_groups = []
        for group in groups:
            self._rbac.check(user, Attempt("impersonate", "", "groups", "", "", group))
        for key, values in extra.items():
            for value in values:
                self._rbac.check(user, Attempt("impersonate", _GROUP, "userextras", key, "", value))
        if uid := _text(headers.get(b"impersonate-uid", b"")):
            self._rbac.check(user, Attempt("impersonate", _GROUP, "uids", "", "", uid))
        groups = groups or own_groups
        everyone = UNAUTHENTICATED if name == ANONYMOUS else AUTHENTICATED
        if not {AUTHENTICATED, UNAUTHENTICATED} & set(groups):
            groups.append(everyone)
        return User(name, tuple(groups), uid, extra)


def _text(value: bytes) -> str:
    return value.decode("latin-1")


def _listed(value: bytes) -> list[str]:
    """The values of a header that may come several times."""
    return [each.strip() for each in _text(value).split(",") if each.strip()]


def _is_extra(name: bytes) -> bool:
    return name.startswith(_EXTRA) and len(name) > len(_EXTRA)
