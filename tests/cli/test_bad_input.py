"""Whatever is wrong with what the user gave: one line that says where, exit code 2, nothing printed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Call = Callable[..., Any]

POD = """
apiVersion: v1
kind: Pod
metadata: {{name: train}}
spec:
  {spec}
  containers: [{{name: main, image: x, resources: {{requests: {{cpu: {cpu}}}}}}}]
"""


def pod(*, cpu: str = "1", spec: str = "priority: 0") -> str:
    return POD.format(cpu=cpu, spec=spec)


BAD_TERM = "[{matchExpressions: [{key: zone, operator: Inn, values: [a]}]}]"
BAD_OPERATOR = (
    "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " + BAD_TERM + "}}}"
)

MANIFESTS = [
    pytest.param("kind: [Pod", ["cluster.yaml: document 1: line 2, column 1", "expected YAML"], id="malformed YAML"),
    pytest.param(
        pod(spec=BAD_OPERATOR),
        ["document 1 (Pod default/train): spec.affinity", "operator", 'found "Inn"'],
        id="unknown operator",
    ),
    pytest.param(
        pod(cpu="1.5.2"),
        ["document 1 (Pod default/train): spec.containers[0].resources.requests.cpu", "expected", '"1.5.2"'],
        id="invalid quantity",
    ),
    pytest.param(
        pod(cpu='"-1"'),
        ["document 1 (Pod default/train): spec.containers[0].resources.requests.cpu", "expected", '"-1"'],
        id="negative request",
    ),
    pytest.param(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: empty}\nspec: {}\n",
        ["document 1 (Pod default/empty): spec.containers", "expected at least one container"],
        id="pod without containers",
    ),
    pytest.param(
        pod() + "---" + pod(),
        ["document 2 (Pod default/train): metadata.name", "expected a name that is not taken", "document 1"],
        id="duplicate name",
    ),
    pytest.param("just a text", ["document 1: expected an object", '"just a text"'], id="not an object"),
    pytest.param("metadata: {name: x}", ["document 1: kind: expected a kind such as Pod"], id="no kind"),
]

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    {profile}
"""

CONFIGS = [
    pytest.param(
        "plugins: {score: {enabled: [{name: NodeResourceFit}]}}",
        ["config.yaml: profiles[0].plugins.score.enabled[0]", "did you mean NodeResourcesFit?", '"NodeResourceFit"'],
        id="unknown plugin",
    ),
    pytest.param(
        "percentageOfNodesToScore: 120",
        ["config.yaml: profiles[0].percentageOfNodesToScore", "0 to 100", "found 120"],
        id="percentage out of range",
    ),
    pytest.param(
        "pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}]",
        ["config.yaml: profiles[0].pluginConfig[0].args.hardPodAffinityWeight", "expected", "101"],
        id="args out of range",
    ),
    pytest.param(
        "schedulerNam: x",
        ["config.yaml: profiles[0].schedulerNam", "did you mean schedulerName?"],
        id="unknown key",
    ),
]

PLUGINS = [
    pytest.param("1 / 0\n", ["plugin.py: line 1", "ZeroDivisionError: division by zero"], id="raises when loaded"),
    pytest.param("def f(:\n", ["plugin.py: line 1", "SyntaxError"], id="not Python"),
    pytest.param("x = 1\n", ["plugin.py: expected at least one class", "found none"], id="no plugin in it"),
    pytest.param(
        "from mooring.engine.plugin import Filter\n"
        "class Odd(Filter):\n"
        "    def filter(self, pod, nodes):\n"
        "        return {}['x']\n",
        ["plugin.py: line 4: plugin Odd: filter: KeyError: 'x'"],
        id="raises when asked",
    ),
    pytest.param(
        "from mooring.plugin import Filter\n"
        "class Teams(Filter):\n"
        "    def filter(self, pod, nodes):\n"
        "        return nodes.has_label('team', (pod.pod.metadata.labels or {}).get('team'))\n",
        [
            'plugin.py: line 4: plugin Teams: filter: it reads the label "team" of pods without saying so: '
            'add reads_pod_labels = ("team",) to the class'
        ],
        id="reads a label unsaid",
    ),
    pytest.param(
        "from mooring.plugin import Filter\n"
        "class Teams(Filter):\n"
        "    reads_pod_labels = 'team'\n"
        "    def filter(self, pod, nodes):\n"
        "        return nodes.has_label('team', pod.label('team'))\n",
        ["Teams: reads_pod_labels: expected keys, such as (\"team\",), or ALL, found 'team'"],
        id="declares a word instead of keys",
    ),
]

NODE = "\n---\napiVersion: v1\nkind: Node\nmetadata: {name: node}\nstatus: {allocatable: {cpu: 4, pods: 9}}\n"


def assert_refused(outcome: Any, parts: list[str]) -> None:
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1, f"expected one line, found {outcome.err!r}"
    for part in parts:
        assert part in outcome.err, f"expected {part!r} in {outcome.err!r}"
    assert outcome.code == 2


@pytest.mark.parametrize("command", [["schedule"], ["explain", "train"]])
@pytest.mark.parametrize(("manifest", "parts"), MANIFESTS)
def test_a_bad_manifest_is_refused_in_one_line(
    mooring: Call, write: Call, command: list[str], manifest: str, parts: list[str]
) -> None:
    assert_refused(mooring(*command, "-f", write(manifest)), parts)


@pytest.mark.parametrize("output", ["table", "json"])
@pytest.mark.parametrize(("profile", "parts"), CONFIGS)
def test_a_bad_configuration_is_refused_in_one_line(
    mooring: Call, write: Call, profile: str, parts: list[str], output: str
) -> None:
    config = write(CONFIG.format(profile=profile), "config.yaml")

    assert_refused(mooring("schedule", "-f", write(pod()), "--config", config, "-o", output), parts)


@pytest.mark.parametrize(("code", "parts"), PLUGINS)
def test_a_plugin_that_cannot_be_used_is_refused_in_one_line(
    mooring: Call, write: Call, code: str, parts: list[str]
) -> None:
    plugin = write(code, "plugin.py")

    assert_refused(mooring("schedule", "-f", write(pod() + NODE), "--plugin", plugin), parts)


ANSWERS = [
    pytest.param(
        "filter",
        "np.ones(7, bool)",
        "expected one answer for each of 1 rows, found an array of shape (7,)",
        id="for nodes that are not there",
    ),
    pytest.param(
        "filter",
        "np.ones(len(nodes))",
        "expected truths, or whole numbers that are 0 where the node will do, found an array of float64",
        id="a filter that returns floats",
    ),
    pytest.param("score", "np.full(len(nodes), np.nan)", "expected a number for every row, found nan", id="NaN"),
    pytest.param("score", "np.full(len(nodes), 1e300)", "expected a number for every row, found 1e+300", id="huge"),
    pytest.param("score", "['many'] * len(nodes)", "expected whole numbers, found an array of <U4", id="words"),
    pytest.param("score", "np.full(len(nodes), 101)", "expected scores from 0 to 100, found 101", id="out of range"),
]


@pytest.mark.parametrize("command", [["schedule"], ["explain", "train"]])
@pytest.mark.parametrize(("point", "answer", "message"), ANSWERS)
def test_an_answer_that_cannot_be_used_is_told_with_plugin_file_and_line(
    mooring: Call, write: Call, command: list[str], point: str, answer: str, message: str
) -> None:
    code = (
        "import numpy as np\nfrom mooring.engine.plugin import Filter, Score\n"
        f"class Odd({point.capitalize()}):\n    def {point}(self, pod, nodes):\n        return {answer}\n"
    )

    outcome = mooring(*command, "-f", write(pod() + NODE), "--plugin", write(code, "plugin.py"))

    assert_refused(outcome, ["plugin.py: line ", f": plugin Odd: {point}: ", message])


@pytest.mark.parametrize("option", ["-f", "--config", "--plugin"])
def test_a_missing_file_is_refused_in_one_line(mooring: Call, write: Call, tmp_path: Path, option: str) -> None:
    missing = tmp_path / "missing.yaml"

    assert_refused(mooring("schedule", "-f", write(pod()), option, missing), [f"{missing}: expected", "o such file"])


def test_an_empty_folder_is_refused_in_one_line(mooring: Call, tmp_path: Path) -> None:
    assert_refused(mooring("schedule", "-f", tmp_path), [f"{tmp_path}: expected a folder with", "found none"])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        pytest.param(["schedule"], "Missing option '--filename'", id="no file"),
        pytest.param(["schedule", "-f", "x", "-o", "xml"], "'xml' is not one of", id="unknown format"),
        pytest.param(["schedule", "-f", "x", "--seed", "-1"], "greater than or equal to 0", id="negative seed"),
        pytest.param(["schedule", "-f", "x", "--sede", "1"], "No such option: --sede", id="unknown option"),
        pytest.param(["shedule"], "No such command 'shedule'", id="unknown command"),
        pytest.param(["explain"], "Missing argument 'POD'", id="no pod"),
    ],
)
def test_bad_usage_is_refused_in_one_line(mooring: Call, arguments: list[str], part: str) -> None:
    assert_refused(mooring(*arguments), [part])


def test_an_unknown_pod_is_refused_with_near_names(mooring: Call, write: Call) -> None:
    assert_refused(mooring("explain", "trian", "-f", write(pod())), ["pod trian", "did you mean train?"])


def test_a_name_that_several_pods_have_is_refused(mooring: Call, write: Call) -> None:
    other = pod().replace("{name: train}", "{name: train, namespace: other}")

    outcome = mooring("explain", "train", "-f", write(pod() + "---" + other))

    assert_refused(outcome, ["pod train", "namespace/name", "default/train, other/train"])
