"""The packages of the image, with their versions and hashes, as a CycloneDX document.

    python tools/sbom.py > mooring.cdx.json          (make sbom)

They are read from deploy/requirements.txt, by which the image is built.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(text: str) -> list[dict[str, Any]]:
    """What a lock file pins; the hashes of all files of a version stand beside each other."""
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if named := REQUIREMENT.match(line):
            name, version = named["name"].lower(), named["version"]
            purl = f"pkg:pypi/{name}@{version}"
            component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
            found.append({**component, "hashes": []})
        for digest in HASH.findall(line):
            found[-1]["hashes"].append({"alg": "SHA-256", "content": digest})
    return found


def document(version: str, text: str) -> dict[str, Any]:
    parts = components(text)
    ours = f"pkg:pypi/mooring@{version}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": ours,
                "name": "mooring",
                "version": version,
                "purl": ours,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": parts,
    }


def main() -> None:
    version = re.search(r'^version = "(.*)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert version is not None
    json.dump(document(version[1], (ROOT / "deploy" / "requirements.txt").read_text()), sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
