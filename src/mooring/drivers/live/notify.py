"""Tell whoever started this process that it is ready, as systemd's `Type=notify` asks for."""

import os
import socket
from contextlib import suppress


def notify_ready() -> None:
    """Send READY=1 to the socket that NOTIFY_SOCKET names, if it names one; nobody has to listen."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address or not hasattr(socket, "AF_UNIX"):
        return
    if address.startswith("@"):
        address = "\0" + address[1:]
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.connect(address)
        told.send(b"READY=1")
