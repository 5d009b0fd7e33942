"""Write down which fields the API types have: Go sources in, `src/mooring/model/api/fields.json` out.

Strict checking of manifests needs the names of all legal fields, also of those that scheduling never reads. They are
facts of the Go types of Kubernetes and of the projects whose kinds we read. Sources are given as folders:

    go mod download k8s.io/api@v0.37.2      (likewise apimachinery, and the modules below as far as a proxy has them)
    git clone https://github.com/kubernetes-sigs/kueue      (for the others)
    python tools/api_fields.py k8s.io/api=FOLDER sigs.k8s.io/kueue=FOLDER ...

A module may be given more than once: a field counts if any of its releases has it, and so do the alpha versions that a
later release dropped.

The file has two parts. `kinds` names the type of each apiVersion and kind. `types` has for each type its fields: those
without fields of their own under "", separated by spaces, the others by name, with their type: `T` an object, `[]T` a
list, `{}T` a map, `{}` a map of plain values.
"""

import json
import re
import sys
from pathlib import Path

META = "k8s.io/apimachinery/pkg/apis/meta/v1"
CORE = (
    "Node Pod Namespace Service PersistentVolume PersistentVolumeClaim ReplicationController ResourceQuota LimitRange"
)
APPS = "Deployment ReplicaSet StatefulSet DaemonSet"
STORAGE = "StorageClass CSINode CSIDriver CSIStorageCapacity VolumeAttachment"
VOLCANO = "volcano.sh/apis/pkg/apis"
KAI = "github.com/NVIDIA/KAI-scheduler/pkg/apis"
KOORDINATOR = "github.com/koordinator-sh/koordinator/apis"
RAY = "github.com/ray-project/kuberay/ray-operator/apis/ray"
NUMA = "github.com/k8stopologyawareschedwg/noderesourcetopology-api/pkg/apis/topology"
NVIDIA_DRA = "github.com/NVIDIA/k8s-dra-driver-gpu/api/nvidia.com"
TRAINER = "github.com/kubeflow/trainer/v2/pkg/apis/trainer/v1alpha1"
ALL = ""

PACKAGES: tuple[tuple[str, str, str], ...] = (
    ("v1", "k8s.io/api/core/v1", CORE),
    ("apps/v1", "k8s.io/api/apps/v1", APPS),
    ("batch/v1", "k8s.io/api/batch/v1", "Job CronJob"),
    ("policy/v1", "k8s.io/api/policy/v1", "PodDisruptionBudget"),
    ("storage.k8s.io/v1", "k8s.io/api/storage/v1", STORAGE),
    *((f"resource.k8s.io/{v}", f"k8s.io/api/resource/{v}", ALL) for v in ("v1", "v1beta1", "v1beta2", "v1alpha3")),
    *((f"scheduling.k8s.io/{v}", f"k8s.io/api/scheduling/{v}", ALL) for v in ("v1", "v1alpha1", "v1alpha2")),
    *((f"scheduling.k8s.io/{v}", f"k8s.io/api/scheduling/{v}", ALL) for v in ("v1alpha3", "v1beta1")),
    *((f"kueue.x-k8s.io/{v}", f"sigs.k8s.io/kueue/apis/kueue/{v}", ALL) for v in ("v1alpha1", "v1beta1", "v1beta2")),
    ("scheduling.volcano.sh/v1beta1", f"{VOLCANO}/scheduling/v1beta1", ALL),
    ("batch.volcano.sh/v1alpha1", f"{VOLCANO}/batch/v1alpha1", ALL),
    ("flow.volcano.sh/v1alpha1", f"{VOLCANO}/flow/v1alpha1", ALL),
    ("topology.volcano.sh/v1alpha1", f"{VOLCANO}/topology/v1alpha1", ALL),
    ("scheduling.x-k8s.io/v1alpha1", "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1", ALL),
    ("scheduling.sigs.k8s.io/v1alpha1", "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1", ALL),
    ("config.koordinator.sh/v1alpha1", f"{KOORDINATOR}/config/v1alpha1", "ClusterColocationProfile"),
    ("scheduling.run.ai/v2", f"{KAI}/scheduling/v2", ALL),
    ("scheduling.run.ai/v2alpha2", f"{KAI}/scheduling/v2alpha2", ALL),
    ("kai.scheduler/v1alpha1", f"{KAI}/kai/v1alpha1", ALL),
    ("leaderworkerset.x-k8s.io/v1", "sigs.k8s.io/lws/api/leaderworkerset/v1", ALL),
    ("jobset.x-k8s.io/v1alpha2", "sigs.k8s.io/jobset/api/jobset/v1alpha2", ALL),
    ("kubeflow.org/v1", "github.com/kubeflow/training-operator/pkg/apis/kubeflow.org/v1", ALL),
    ("kubeflow.org/v2beta1", "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1", ALL),
    ("trainer.kubeflow.org/v1alpha1", TRAINER, "TrainJob TrainingRuntime ClusterTrainingRuntime"),
    ("sparkoperator.k8s.io/v1beta2", "github.com/kubeflow/spark-operator/v2/api/v1beta2", "SparkApplication"),
    ("workload.codeflare.dev/v1beta2", "github.com/project-codeflare/appwrapper/api/v1beta2", "AppWrapper"),
    ("ray.io/v1", f"{RAY}/v1", ALL),
    ("ray.io/v1alpha1", f"{RAY}/v1alpha1", ALL),
    ("grove.io/v1alpha1", "github.com/ai-dynamo/grove/operator/api/core/v1alpha1", ALL),
    *((f"topology.node.k8s.io/{v}", f"{NUMA}/{v}", "NodeResourceTopology") for v in ("v1alpha1", "v1alpha2")),
    ("resource.nvidia.com/v1beta1", f"{NVIDIA_DRA}/resource/v1beta1", "ComputeDomain"),
    ("scheduler.grove.io/v1alpha1", "github.com/ai-dynamo/grove/scheduler/api/core/v1alpha1", ALL),
)
"""apiVersion, Go package, and the kinds of it that count: all, or those named."""

MACHINERY = "k8s.io/apimachinery/pkg"
PLAIN = {f"{META}.{name}" for name in ("Time", "MicroTime", "Duration", "FieldsV1", "Timestamp")} | {
    f"{MACHINERY}/api/resource.Quantity",
    f"{MACHINERY}/util/intstr.IntOrString",
    f"{MACHINERY}/runtime.RawExtension",
}
"""Structs that are written as plain values."""

_TYPE = re.compile(r"^type (\w+)(?:\[[^\]]*\])? (=? ?)(struct \{|[^\n]+)$", re.MULTILINE)
_IMPORT = re.compile(r'^\s*(?:import\s+)?(?:(\w+|\.)\s+)?"([\w./-]+)"$', re.MULTILINE)
_FIELD = re.compile(r'^\t(?:(\w+)\s+)?([\w.*\[\]]+)\s+`[^`]*json:"([^"]*)"[^`]*`', re.MULTILINE)
_EMBEDDED = re.compile(r"^\t(\*?[\w.]+)$", re.MULTILINE)


class Sources:
    """Types by full name (package.Type): a struct's fields, or the type that it stands for."""

    def __init__(self, folders: dict[str, list[Path]]) -> None:
        self._folders = folders
        self._packages: dict[str, dict[str, object]] = {}

    def type(self, name: str) -> object:
        """Fields of a struct by JSON name, the text of another type, or None for one whose sources are not given."""
        package, _, short = name.rpartition(".")
        if package not in self._packages:
            self._packages[package] = self._read(package)
        return self._packages[package].get(short)

    def names(self, package: str) -> list[str]:
        self.type(f"{package}.")
        return list(self._packages[package])

    def _read(self, package: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for module, folders in self._folders.items():
            if package == module or package.startswith(f"{module}/"):
                for folder in folders:
                    _read_folder(folder / package[len(module) :].strip("/"), package, found)
        return found


def _read_folder(folder: Path, package: str, found: dict[str, object]) -> None:
    """Add the types of one folder; of a struct that is known, the fields that it did not have."""
    for file in sorted(folder.glob("*.go")):
        if file.name.endswith("_test.go") or file.name.startswith(("zz_", "generated")):
            continue
        text = file.read_text()
        imports = {alias or path.rpartition("/")[2]: path for alias, path in _IMPORT.findall(text)}
        for match in _TYPE.finditer(text):
            name, _, rest = match.groups()
            if rest != "struct {":
                found.setdefault(name, _qualify(rest.partition("//")[0].strip(), package, imports))
                continue
            known = found.setdefault(name, {})
            if isinstance(known, dict):
                body = text[match.end() : text.index("\n}", match.end() - 1)]
                fields = _fields(body, package, imports)
                found[name] = fields | known


def _qualify(text: str, package: str, imports: dict[str, str]) -> str:
    """Spell a type with the full name of its package, pointers dropped."""
    text = text.replace("*", "")
    prefix = ""
    while match := re.match(r"\[\]|map\[[\w.]+\]", text):
        prefix += "[]" if match[0] == "[]" else "{}"
        text = text[match.end() :]
    alias, dot, name = text.rpartition(".")
    if dot:
        return f"{prefix}{imports.get(alias, alias)}.{name}"
    return f"{prefix}{package}.{text}" if text[:1].isupper() else prefix + text


def _fields(body: str, package: str, imports: dict[str, str]) -> dict[str, str]:
    """Fields by JSON name; those that are inlined under a name that begins with `<`."""
    found: dict[str, str] = {}
    for name, type_, tag in _FIELD.findall(body):
        json_name, *options = tag.split(",")
        if json_name == "-":
            continue
        qualified = _qualify(type_, package, imports)
        if "inline" in options or (not name and not json_name):
            found[f"<{len(found)}"] = qualified
        else:
            found[json_name or name] = qualified
    for type_ in _EMBEDDED.findall(body):
        found[f"<{len(found)}"] = _qualify(type_, package, imports)
    return found


class Tree:
    """The types that kinds need, as they are written."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self.types: dict[str, dict[str, str]] = {}

    def form(self, type_: str) -> str:
        """`T`, `[]T`, `{}T` or `{}`, with T a type that is kept; empty for plain values and what is not known."""
        prefix, name = re.match(r"((?:\[\]|\{\})*)(.*)", type_).groups()
        found = None if name in PLAIN else self._sources.type(name) if "." in name else None
        while isinstance(found, str):
            if re.match(r"[\[{]", found):
                return self.form(prefix + found)
            name, found = found, self._sources.type(found) if "." in found else None
        if not isinstance(found, dict) or name in PLAIN or not self.keep(name, found):
            return "{}" if prefix == "{}" else ""
        return prefix + _short(name)

    def keep(self, name: str, fields: dict[str, str]) -> bool:
        """Write a type down, with all that it needs; False if it has no fields that JSON knows.

        What only controllers write is not looked into: managedFields, and the status of all kinds but Node.
        """
        short = _short(name)
        if short in self.types:
            return True
        flat = self._flatten(fields)
        if not flat:
            return False
        written = self.types[short] = {}
        others = {"managedFields"} if short == "meta/v1.ObjectMeta" else set()
        if "metadata" in flat and short != "core/v1.Node":
            others.add("status")
        forms = {field: "" if field in others else self.form(type_) for field, type_ in sorted(flat.items())}
        written[""] = " ".join(field for field, form in forms.items() if not form)
        written |= {field: form for field, form in forms.items() if form}
        return True

    def _flatten(self, fields: dict[str, str]) -> dict[str, str]:
        flat: dict[str, str] = {}
        for field, type_ in fields.items():
            if not field.startswith("<"):
                flat[field] = type_
                continue
            inner = self._sources.type(type_)
            while isinstance(inner, str):
                inner = self._sources.type(inner)
            if isinstance(inner, dict):
                flat |= self._flatten(inner)
            else:
                print(f"not found, and inlined: {type_}", file=sys.stderr)
        return flat


def _short(name: str) -> str:
    """`core/v1.PodSpec` for k8s.io's own, and a name that says whose it is for the others."""
    for prefix in ("k8s.io/api/", "k8s.io/apimachinery/pkg/apis/", "sigs.k8s.io/", "github.com/"):
        name = name.removeprefix(prefix)
    return name.replace("/pkg/apis", "").replace("/apis", "").replace("/api/", "/")


def main(arguments: list[str]) -> None:
    folders: dict[str, list[Path]] = {}
    for module, _, folder in (argument.partition("=") for argument in arguments):
        folders.setdefault(module, []).append(Path(folder))
    sources = Sources(folders)
    tree = Tree(sources)
    kinds: dict[str, str] = {}
    for api_version, package, wanted in PACKAGES:
        for name in wanted.split() or sources.names(package):
            fields = sources.type(f"{package}.{name}")
            inlined = set(fields.values()) if isinstance(fields, dict) else set()
            if f"{META}.TypeMeta" in inlined and f"{META}.ObjectMeta" in inlined:
                kinds[f"{api_version} {name}"] = tree.form(f"{package}.{name}")
            elif wanted:
                print(f"not found: {package}.{name}", file=sys.stderr)
    lines = [f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(tree.types.items())]
    target = Path(__file__).parents[1] / "src/mooring/model/api/fields.json"
    named = json.dumps(dict(sorted(kinds.items())), indent=0)
    target.write_text('{"kinds": ' + named + ',\n"types": {\n' + ",\n".join(lines) + "\n}}\n")
    print(f"{len(kinds)} kinds, {len(lines)} types, {target.stat().st_size:,} bytes", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
