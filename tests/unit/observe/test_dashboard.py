"""What is deployed refers to what there is."""

import json
import re
from pathlib import Path

from mooring.observe.metrics import Metrics

DEPLOY = Path(__file__).parents[3] / "deploy"


def test_every_metric_on_the_dashboard_exists() -> None:
    known = {sample.name for family in Metrics().registry.collect() for sample in family.samples}
    known |= {family.name for family in Metrics().registry.collect()}
    dashboard = json.loads((DEPLOY / "grafana" / "mooring.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    named = {
        name for text in expressions for name in re.findall(r"\b(?:mooring|scheduler|kueue|leader_election)_\w+", text)
    }
    families = {re.sub(r"_(bucket|sum|count|total)$", "", name) for name in named}
    assert len(expressions) == 28
    assert {"mooring_plans", "mooring_measured_nodes"} <= named
    assert families <= known, families - known


def test_the_chart_has_the_rights_of_the_manifests() -> None:
    manifests = (DEPLOY / "manifests" / "rbac.yaml").read_text()
    chart = (DEPLOY / "chart" / "templates" / "rbac.yaml").read_text()
    named = "".join(line for line in chart.splitlines(keepends=True) if not line.startswith("{{-"))
    named = re.sub(r"\{\{ with .*?\{\{ end \}\}", "", named)  # what values add to it
    for name in (".Release.Name", "$lease", "$memory"):
        named = named.replace(f"{{{{ {name} }}}}", "mooring")
    for namespace in (".Release.Namespace", 'include "mooring.leaseNamespace" .'):
        named = named.replace(f"{{{{ {namespace} }}}}", "kube-system")
    assert named == manifests
