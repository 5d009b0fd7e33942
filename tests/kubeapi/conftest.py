from collections.abc import Iterator

import pytest
from running import Client, Running, running


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    with running() as found:
        yield found


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    found = Client(server.cluster)
    yield found
    found.close()
