"""The composition root of the embedded control plane: a store, the API over it, its server, and what runs beside."""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from mooring.kubeapi.admission.chain import turn_on
from mooring.kubeapi.api import Api
from mooring.kubeapi.auth.certificates import Pair, issue_client, issue_server, make_authority
from mooring.kubeapi.auth.kubeconfig import make_kubeconfig
from mooring.kubeapi.auth.rbac import Rbac
from mooring.kubeapi.auth.tokens import Tokens, make_signing_key
from mooring.kubeapi.auth.user import AUTHENTICATED, MASTERS, User
from mooring.kubeapi.bootstrap import bootstrap
from mooring.kubeapi.clock import SteadyClock
from mooring.kubeapi.controllers.context import Context
from mooring.kubeapi.controllers.manager import make_controllers
from mooring.kubeapi.definitions import Definitions
from mooring.kubeapi.http.app import App
from mooring.kubeapi.http.server import Server, open_socket
from mooring.kubeapi.kinds import Kinds
from mooring.kubeapi.metadata import timestamp
from mooring.kubeapi.registry import Registry
from mooring.kubeapi.schemas.book import Schemas
from mooring.kubeapi.status import Object
from mooring.kubeapi.store.log import SqliteLog, damaged
from mooring.kubeapi.store.store import Store
from mooring.kubeapi.tables import Tables
from mooring.model.capacity.provider import Catalogue

Used = TypeVar("Used")
ADMIN = "kubernetes-admin"
_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""How who is on this machine reaches a server that listens at every address."""


@dataclass(frozen=True)
class Place:
    """Where a cluster is kept and reached."""

    data: Path | None = None
    """The file; None keeps everything in memory."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 takes any that is free."""


class Cluster:
    """A control plane in this process. `start` and `stop` it in an event loop."""

    def __init__(self, place: Place, *, with_controllers: bool = True, catalogue: Catalogue | None = None) -> None:
        at = _HERE.get(place.host, place.host)
        self._listening = open_socket(place.host, place.port)
        self.port: int = self._listening.getsockname()[1]
        log = SqliteLog(place.data) if place.data is not None else None
        self.store = Store(log)
        self.api, definitions = make_api(self.store, SteadyClock())
        self.rbac = Rbac(self.api)
        admission = turn_on(self.api, self.rbac)
        keys = _Keys(log)
        self._authority = keys.pair("authority", make_authority)
        certificate = keys.checked(lambda: issue_server(self._authority, (place.host, at, socket.gethostname())))
        self._context = Context(self.api, self.api.now, root_certificate=self._authority.certificate.decode())
        self._controllers = (
            make_controllers(self._context, admission.quotas, catalogue=catalogue) if with_controllers else []
        )
        self._admin_token = keys.text("admin-token", lambda: secrets.token_urlsafe(32).encode()).decode()
        admin = User(ADMIN, (MASTERS, AUTHENTICATED))
        signing_key = keys.text("signing-key", make_signing_key)
        self.tokens = self.api.tokens = keys.checked(lambda: Tokens(self.api, signing_key, {self._admin_token: admin}))
        host = f"[{at}]" if ":" in at else at
        self.url = f"https://{host}:{self.port}"
        tables = Tables(self.api.now, definitions.columns)
        self.app = App(self.api, self.rbac, self.tokens, f"{host}:{self.port}", tables.table)
        self._server = Server(self.app, self._listening, certificate, self._authority.certificate)

    def kubeconfig(self, users: Mapping[str, Sequence[str]] | None = None) -> Object:
        """The administrator's way in, and those of other users, given with their groups."""
        client = issue_client(self._authority, ADMIN, (MASTERS,))
        others = {name: issue_client(self._authority, name, groups) for name, groups in (users or {}).items()}
        return make_kubeconfig(self.url, self._authority.certificate, client, self._admin_token, others)

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        bootstrap(self.api, self.port)
        for controller in self._controllers:
            controller.start()
        self.store.attach(loop)
        self._context.runner.attach(loop)
        await self._server.start()

    def settle(self) -> None:
        """Let the controllers do all that there is to do now."""
        self._context.runner.run_until_idle()

    async def stop(self) -> None:
        self._context.runner.stop()
        self.store.end_watches()
        await self._server.stop()
        self.store.close()


def make_api(store: Store, now: Callable[[], float] = time.time) -> tuple[Api, Definitions]:
    """The API over a store, with the rules of all kinds, built in and defined."""
    registry, schemas = Registry(), Schemas()

    def services() -> Iterator[Object]:
        return (record.decode() for record in store.records("services"))

    definitions = Definitions(registry, schemas, lambda: timestamp(now()))
    kinds = Kinds(services, lambda: timestamp(now()), definitions.strategy_of)
    api = Api(store, registry, strategy_of=kinds.strategy_of, schemas=schemas, now=now)
    definitions.attach(api)
    return api, definitions


class _Keys:
    """Secrets of the cluster, kept in its file so that clients' configurations stay good."""

    def __init__(self, log: SqliteLog | None) -> None:
        self._log = log

    def text(self, name: str, make: Callable[[], bytes]) -> bytes:
        found = self._log.kept(name) if self._log is not None else None
        if found is None:
            found = make()
            if self._log is not None:
                self._log.keep(name, found)
        return found

    def pair(self, name: str, make: Callable[[], Pair]) -> Pair:
        parts = self.text(name, lambda: b"\0".join(make())).split(b"\0")
        return self.checked(lambda: Pair(*parts))

    def checked(self, use: Callable[[], Used]) -> Used:
        """What is made of a key; a key that is none is damage of the file."""
        try:
            return use()
        except (ValueError, TypeError) as error:
            if self._log is None:
                raise
            raise damaged(self._log.path, f"its keys cannot be read ({error})") from error
