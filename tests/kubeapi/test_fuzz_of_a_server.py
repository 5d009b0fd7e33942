"""Some requests of `python tests/fuzz/server.py`, which sends a hundred thousand."""

import importlib.util
from pathlib import Path

import pytest

PATH = Path(__file__).parents[1] / "fuzz" / "server.py"


@pytest.mark.parametrize("clients", [1, 4], ids=["the same in every run", "several at once"])
def test_odd_requests_of_all_kinds_end_in_no_fault(tmp_path: Path, clients: int) -> None:
    spec = importlib.util.spec_from_file_location("fuzz_server", PATH)
    assert spec is not None and spec.loader is not None
    fuzzer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzzer)
    server = fuzzer.Server(tmp_path, "--no-scheduler")
    try:
        outcome = fuzzer.fuzz(server, 1_000, seed=11, clients=clients)
    finally:
        server.stop()

    assert outcome.faults == []
    assert outcome.codes.total() == 1_000
    assert len(outcome.codes) > 6
