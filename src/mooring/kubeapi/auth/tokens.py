"""Bearer tokens: the administrator's, and those that stand for service accounts (signed, and good for a time)."""

import base64
import hashlib
import json
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from mooring.kubeapi.auth.user import AUTHENTICATED, NODE_NAME, User
from mooring.kubeapi.metadata import timestamp
from mooring.kubeapi.status import FieldError, Object, bad_request, conflict, invalid

if TYPE_CHECKING:
    from mooring.kubeapi.api import Api

ISSUER = "https://kubernetes.default.svc.cluster.local"
SHORTEST_SECONDS, USUAL_SECONDS, LONGEST_SECONDS = 600, 3600, 2**32
REMEMBERED_SECONDS = 10.0
"""How long an answer about a token is used again."""
MOST_REMEMBERED = 10_000
LONGEST_TOKEN = 16 * 1024


def make_signing_key() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


class Tokens:
    """Makes tokens, and tells whose they are."""

    def __init__(self, api: "Api", signing_key: bytes, static: dict[str, User]) -> None:
        key = serialization.load_pem_private_key(signing_key, None)
        assert isinstance(key, rsa.RSAPrivateKey)
        self._api, self._key, self._static = api, key, static
        self._public = key.public_key()
        self._id = hashlib.sha256(
            self._public.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        ).hexdigest()[:43]
        self._remembered: dict[str, tuple[float, User]] = {}
        self.now: Callable[[], float] = time.time

    def user_of(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> User | None:
        """Whose token this is; None if nobody's."""
        if len(token) > LONGEST_TOKEN:
            return None
        if (found := self._static.get(token)) is not None:
            return found
        now = self.now()
        remembered = self._remembered.get(token)
        if remembered is not None and now - remembered[0] < REMEMBERED_SECONDS and audiences == (ISSUER,):
            return remembered[1]
        claims = self._verified(token)
        user = self._user(claims, audiences) if claims is not None else None
        if user is not None and audiences == (ISSUER,):
            if len(self._remembered) > MOST_REMEMBERED:
                self._remembered.clear()
            self._remembered[token] = (now, user)
        return user

    def _verified(self, token: str) -> Object | None:
        try:
            head, body, signature = token.split(".")
            if json.loads(_unpacked(head)).get("alg") != "RS256":
                return None
            signed = f"{head}.{body}".encode()
            self._public.verify(_unpacked(signature), signed, padding.PKCS1v15(), hashes.SHA256())
            claims = json.loads(_unpacked(body))
        except (ValueError, InvalidSignature, AttributeError, UnicodeDecodeError, RecursionError):
            return None
        return claims if isinstance(claims, dict) and claims.get("exp", 0) > self.now() else None

    def _user(self, claims: Object, audiences: tuple[str, ...]) -> User | None:
        """The service account, if it and the object that the token is bound to are still there."""
        about = claims.get("kubernetes.io") or {}
        namespace, account = about.get("namespace", ""), about.get("serviceaccount") or {}
        if not set(audiences) & set(claims.get("aud") or ()):
            return None
        for resource, bound in (
            ("serviceaccounts", account),
            ("pods", about.get("pod")),
            ("secrets", about.get("secret")),
        ):
            if bound is None:
                continue
            found = self._api.find(resource, namespace, bound.get("name", ""))
            if found is None or found["metadata"]["uid"] != bound.get("uid"):
                return None
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims.get('jti', '')}"]}
        if pod := about.get("pod"):
            extra["authentication.kubernetes.io/pod-name"] = [pod["name"]]
            extra["authentication.kubernetes.io/pod-uid"] = [pod["uid"]]
        if node := about.get("node"):
            extra[NODE_NAME] = [node["name"]]
            if node.get("uid"):
                extra["authentication.kubernetes.io/node-uid"] = [node["uid"]]
        return service_account(namespace, account["name"], account["uid"], extra)

    def request(self, namespace: str, name: str, body: Object, *, dry_run: bool = False) -> Object:
        """Answer a TokenRequest for a service account."""
        account = self._api.get("serviceaccounts", namespace, name)
        spec: Object = dict(body.get("spec") or {})
        seconds = spec.get("expirationSeconds") or USUAL_SECONDS
        if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
            detail = (
                "may not specify a duration less than 10 minutes"
                if seconds < SHORTEST_SECONDS
                else "may not specify a duration larger than 2^32 seconds"
            )
            error = FieldError("FieldValueInvalid", "spec.expirationSeconds", detail, seconds)
            raise invalid("authentication.k8s.io", "TokenRequest", "", [error])
        audiences = spec.get("audiences") or [ISSUER]
        now = int(self.now())
        about: Object = {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": account["metadata"]["uid"]},
        }
        if bound := spec.get("boundObjectRef"):
            about |= self._bound(namespace, bound)
        claims = {
            "aud": audiences,
            "exp": now + seconds,
            "iat": now,
            "nbf": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": about,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        spec |= {"audiences": audiences, "expirationSeconds": seconds}
        status = {"token": "" if dry_run else self._signed(claims), "expirationTimestamp": timestamp(now + seconds)}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace, "creationTimestamp": timestamp(now)},
            "spec": spec,
            "status": status,
        }

    def _bound(self, namespace: str, bound: Object) -> Object:
        kind, name = bound.get("kind", ""), bound.get("name", "")
        resource = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}.get(kind)
        if resource is None:
            raise bad_request(f"cannot bind token for serviceaccount to an object of kind {kind}")
        found = self._api.get(resource, namespace, name)
        uid = found["metadata"]["uid"]
        if bound.get("uid") and bound["uid"] != uid:
            why = f"the UID in the bound object reference ({bound['uid']}) does not match the UID in record"
            raise conflict("", resource, name, why)
        about = {kind.lower(): {"name": name, "uid": uid}}
        if kind == "Pod" and (node := found["spec"].get("nodeName")):
            there = self._api.find("nodes", None, node)
            about["node"] = {"name": node, **({"uid": there["metadata"]["uid"]} if there is not None else {})}
        return about

    def _signed(self, claims: Object) -> str:
        head = _packed(json.dumps({"alg": "RS256", "kid": self._id}).encode())
        body = _packed(json.dumps(claims, separators=(",", ":")).encode())
        signature = self._key.sign(f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{head}.{body}.{_packed(signature)}"

    def keys(self) -> Object:
        """The public key, as others check tokens with it (JWKS)."""
        numbers = self._public.public_numbers()
        return {
            "keys": [
                {
                    "use": "sig",
                    "kty": "RSA",
                    "kid": self._id,
                    "alg": "RS256",
                    "n": _packed(numbers.n.to_bytes((numbers.n.bit_length() + 7) // 8, "big")),
                    "e": _packed(numbers.e.to_bytes(3, "big")),
                }
            ]
        }


def service_account(namespace: str, name: str, uid: str = "", extra: dict[str, list[str]] | None = None) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
    return User(f"system:serviceaccount:{namespace}:{name}", groups, uid, extra or {})


def _packed(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpacked(text: str) -> Any:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
