import math

import pytest

from mooring.model.kubelet.commands import ENDLESS, UNKNOWN, Ending, ending_of


@pytest.mark.parametrize(
    ("command", "ending"),
    [
        pytest.param(["sleep", "30"], Ending(30.0), id="sleep"),
        pytest.param(["/bin/sleep", "1.5m"], Ending(90.0), id="sleep in minutes"),
        pytest.param(["sleep", "infinity"], Ending(math.inf), id="sleep for ever"),
        pytest.param(["/bin/false"], Ending(0.5, exit_code=1), id="false"),
        pytest.param(["sh", "-c", "exit 3"], Ending(0.5, exit_code=3), id="exit code"),
        pytest.param(["/bin/sh", "-c", "echo a; sleep 2 && sleep 3; exit 1"], Ending(5.0, exit_code=1), id="script"),
        pytest.param(["sh", "-c", "while true; do sleep 1; done"], ENDLESS, id="endless loop"),
        pytest.param(["python", "train.py"], UNKNOWN, id="program"),
        pytest.param(["sh", "-c", "sleep 5; python train.py"], UNKNOWN, id="script with a program"),
        pytest.param(
            ["sh", "-c", "if [ $(expr ${JOB_COMPLETION_INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi"],
            Ending(0.5, odd_indexes_fail=True),
            id="odd index",
        ),
        pytest.param(["/bin/sh", "-c", "exit $(( $RANDOM / 16384 ))"], Ending(0.5, failure_probability=0.5), id="coin"),
        pytest.param([], UNKNOWN, id="nothing"),
    ],
)
def test_a_command_tells_when_and_how_its_container_ends(command: list[str], ending: Ending) -> None:
    assert ending_of("registry.k8s.io/e2e-test-images/busybox:1.36", command) == ending


def test_the_pause_image_never_ends() -> None:
    assert ending_of("registry.k8s.io/pause:3.10", []) == ENDLESS
