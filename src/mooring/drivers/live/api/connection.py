"""How to reach a cluster and who we are there, from a kubeconfig or from inside of a pod.

Reading kubeconfigs that are more than a server and a token, running exec plugins and renewing tokens is left to
kubernetes-asyncio; nothing else of it is used.
"""

import asyncio
import logging
import os
import re
import ssl
import time
from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

from mooring.drivers.live.api.plain_config import NotPlain, PlainConfig, read_account, read_plain
from mooring.errors import InputError

RENEW_SECONDS = 60.0
"""How often credentials are asked for anew where they may expire: tokens in files, exec plugins."""

UNAUTHORIZED = 401


class Connection:
    """One API server and our credentials there; a token never leaves this object but in a request's header."""

    def __init__(self, configuration: Any, loader: Any, source: str) -> None:
        self._configuration, self._loader, self.source = configuration, loader, source
        self._renewed = time.monotonic()
        self._renewing: asyncio.Lock = asyncio.Lock()
        self.server: str = without_userinfo(configuration.host)
        """Its address, as it may be shown."""
        self._basic = _basic(configuration.host)

    @property
    def headers(self) -> dict[str, str]:
        token = self._configuration.api_key.get("BearerToken") or self._basic
        return {"Authorization": token} if token else {}

    @property
    def proxy(self) -> str | None:
        found: str | None = self._configuration.proxy
        return found

    def tls(self) -> ssl.SSLContext | None:
        """How the server is verified, and our certificate; None for plain HTTP."""
        if not self.server.startswith("https"):
            return None
        settings = self._configuration
        try:
            if isinstance(settings, PlainConfig):
                context = settings.tls()
            else:
                context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
                if settings.cert_file:
                    context.load_cert_chain(settings.cert_file, settings.key_file)
        except (OSError, ValueError) as error:  # SSLError is an OSError
            raise InputError(
                f"{self.source}: expected certificates that can be read, found {type(error).__name__}: {error}"
            ) from error
        if not settings.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    @property
    def server_name(self) -> str | None:
        """What the server's certificate is for, where that is not its host."""
        found: str | None = getattr(self._configuration, "tls_server_name", None)
        return found

    def refusal(self, code: int, message: str) -> str:
        """What to say of an answer to the first question: of whom it is, and whose credentials were not accepted."""
        if code == UNAUTHORIZED:
            return f"{self.server}: {message}: the credentials of {self.source} are not accepted"
        return f"{self.server}: {message}" if code else message  # where nobody answered, it names the server itself

    @property
    def may_have_expired(self) -> bool:
        return time.monotonic() - self._renewed >= RENEW_SECONDS

    async def renew(self, *, at_once: bool = False) -> None:
        """Ask for credentials anew if they may have expired, or were refused."""
        if not at_once and not self.may_have_expired:
            return
        async with self._renewing:
            if time.monotonic() - self._renewed < (1.0 if at_once else RENEW_SECONDS):
                return
            self._renewed = time.monotonic()
            if self._loader is None:
                hook = self._configuration.refresh_api_key_hook
                if hook is not None:
                    hook(self._configuration)
                return
            try:
                await self._loader.load_and_set(self._configuration)
            except Exception as error:  # an exec plugin may fail in any way: what we have may still serve
                logging.getLogger(__name__).warning("credentials were not renewed: %s", type(error).__name__)


async def connect(kubeconfig: Path | None, context: str | None = None, server: str | None = None) -> Connection:
    """Read a kubeconfig ($KUBECONFIG or ~/.kube/config if none is named), or what a pod is given by its node."""
    named = kubeconfig is not None or os.environ.get("KUBECONFIG")
    path = kubeconfig or Path(os.environ.get("KUBECONFIG") or Path.home() / ".kube" / "config")
    if not named and not path.exists() and "KUBERNETES_SERVICE_HOST" in os.environ:
        return Connection(_of_account(), None, "in-cluster configuration")
    for one in str(path).split(os.pathsep):
        if not Path(one).is_file() and os.pathsep not in str(path):
            raise InputError(f"{one}: expected a kubeconfig, found no such file")
    source = str(path)
    documents = _documents(source)
    configuration: Any
    loader: Any = None
    try:
        if os.pathsep in source:
            raise NotPlain
        configuration = read_plain(documents[0] if documents else None, context, path.absolute().parent)
    except NotPlain:
        configuration, loader = await _load(source, context)
    if server:
        configuration.host = server.rstrip("/")
    return Connection(configuration, loader, source)


def _of_account() -> Any:
    """What a pod is given by its node; what is wrong with it is said in kubernetes-asyncio's words."""
    try:
        return read_account(os.environ)
    except NotPlain:
        from kubernetes_asyncio import config as loaders
        from kubernetes_asyncio.client import Configuration

        configuration: Any = Configuration()
        load: Any = loaders.load_incluster_config
        try:
            load(client_configuration=configuration)
        except loaders.ConfigException as error:
            raise InputError(f"in-cluster configuration: {error}") from error
        return configuration


async def _load(source: str, context: str | None) -> tuple[Any, Any]:
    """A kubeconfig as kubernetes-asyncio reads it, and who renews its credentials."""
    from kubernetes_asyncio import config as loaders
    from kubernetes_asyncio.client import Configuration

    logging.getLogger("kubernetes_asyncio").setLevel(logging.CRITICAL)  # it logs what plugins print, tokens included
    configuration: Any = Configuration()
    try:
        loader = await loaders.load_kube_config(
            config_file=source, context=context, client_configuration=configuration, persist_config=False
        )
    except loaders.ConfigException as error:
        why = _exec_problem(str(error), source, context) if str(error).startswith("exec:") else str(error)
        raise InputError(f"{source}: expected a kubeconfig, found one that cannot be used: {why}") from None
    except Exception as error:  # the loader raises whatever the file makes it raise
        found = f"{type(error).__name__}: {_shown(error)}"
        raise InputError(f"{source}: expected a kubeconfig, found one that cannot be used: {found}") from None
    return configuration, loader


def _documents(source: str) -> list[Any]:
    """What the files say that can be read; files that are no kubeconfigs at all are refused, in one line that quotes
    nothing of them."""
    documents = []
    for one in filter(None, source.split(os.pathsep)):
        try:
            found = yaml.safe_load(Path(one).read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError):  # one of several may be missing; the loader has the words
            continue
        if not isinstance(found, dict):
            what = "an empty file" if found is None else "plain text" if isinstance(found, str) else "a list"
            raise InputError(
                f"{one}: expected a kubeconfig (a mapping with clusters, contexts and users), found {what}"
            )
        for name in ("clusters", "contexts", "users"):
            if not isinstance(found.get(name) or [], list):
                raise InputError(f"{one}: {name}: expected a list, found {type(found[name]).__name__}")
        documents.append(found)
    return documents


def without_userinfo(url: str) -> str:
    """An address without the user and the password that it may carry: for people and logs."""
    return re.sub(r"^([^:/@]+://)?.*@", r"\1", url)


def _basic(url: str) -> str:
    """The header that user and password of an address make."""
    found = re.match(r"^(?:[^:/@]+://)?(.*)@", url)
    return f"Basic {b64encode(unquote(found[1]).encode()).decode()}" if found else ""


def _exec_problem(message: str, source: str, context: str | None) -> str:
    """What became of an exec plugin: never what it wrote, which may be a secret, nor its arguments."""
    code = re.match(r"exec: process returned (-?\d+)", message)
    became = f"ended with exit code {code[1]}" if code else "gave no credentials that can be used"
    return f"the exec plugin {_exec_command(source, context)} {became}"


def _exec_command(source: str, context: str | None) -> str:
    """The name of the exec plugin's command, as the kubeconfig has it."""
    contexts: dict[str, Any] = {}
    users: dict[str, Any] = {}
    for path in source.split(os.pathsep):
        try:
            found = yaml.safe_load(Path(path).read_text())
            contexts |= {each["name"]: each["context"] for each in found.get("contexts") or ()}
            users |= {each["name"]: each["user"] for each in found.get("users") or ()}
            context = context or found.get("current-context")
        except (OSError, yaml.YAMLError, AttributeError, KeyError, TypeError):  # the loader has made something of it
            continue
    try:
        return str(users[contexts[str(context)]["user"]]["exec"]["command"])
    except (KeyError, TypeError):
        return "of its user"


def _shown(error: Exception) -> str:
    """What an error says, if it cannot be a secret: messages of the YAML parser quote the file."""
    mark = getattr(error, "problem_mark", None)
    if mark is not None:
        return f"line {mark.line + 1} is no YAML"
    return str(error).splitlines()[0][:200] if isinstance(error, OSError | AssertionError) and str(error) else ""
