"""Who is behind a request: by client certificate or bearer token, and perhaps acting for someone else."""

from urllib.parse import unquote

from mooring.kubeapi.auth.certificates import user_of
from mooring.kubeapi.auth.rbac import Attempt, Rbac
from mooring.kubeapi.auth.tokens import Tokens
from mooring.kubeapi.auth.user import AUTHENTICATED, User
from mooring.kubeapi.status import bad_request, unauthorized

_EXTRA = b"impersonate-extra-"
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
        if any(name in headers for name in _NOT_WITHOUT_USER):
            raise bad_request("requested groups or uid to impersonate without a user")
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
        name = headers[b"impersonate-user"].decode()
        groups = [
            group.strip() for group in headers.get(b"impersonate-group", b"").decode().split(",") if group.strip()
        ]
        extra = {
            unquote(key[len(_EXTRA) :].decode()): [value.decode()]
            for key, value in headers.items()
            if key.startswith(_EXTRA)
        }
        prefix, _, account = name.partition("system:serviceaccount:")
        if not prefix and account:
            namespace, _, account = account.partition(":")
            self._rbac.check(user, Attempt("impersonate", "", "serviceaccounts", "", namespace, account))
            groups = groups or ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        else:
            self._rbac.check(user, Attempt("impersonate", "", "users", "", "", name))
        for group in groups:
            self._rbac.check(user, Attempt("impersonate", "", "groups", "", "", group))
        if AUTHENTICATED not in groups:
            groups.append(AUTHENTICATED)
        return User(name, tuple(groups), headers.get(b"impersonate-uid", b"").decode(), extra)
