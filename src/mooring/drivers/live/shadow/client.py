"""A client that sends no request which could change anything."""

from mooring.drivers.live.api.client import JSON, Client, Told
from mooring.errors import InvariantBroken


class ReadOnlyClient(Client):
    """Reads and watches; anything else is a fault of ours, and is not sent."""

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        *,
        is_fenced: bool = True,
    ) -> bytes:
        if method != "GET":
            raise InvariantBroken(f"a shadow changes nothing, and was to send {method} {path}")
        return await super().request(method, path, body, content_type, accept, is_fenced=is_fenced)

    def post_at_once(self, path: str, body: bytes, answered: Told) -> bool:
        raise InvariantBroken(f"a shadow changes nothing, and was to send POST {path}")
