"""Links of the documentation to files outside of docs/: each such file is a page of the site.

In the repository a page links to `../examples/gangs` or `../SECURITY.md`, and a code host shows the file. The site has
no code host: root pages become pages under `project/`, other files and folders pages under `files/`.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT_PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
LINK = re.compile(r"(?P<before>\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?P<after>\))")
FENCE = re.compile(r"^( *)(```|~~~)")
CODE_IN_TABLE = re.compile(r"`[^`]*`")
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".toml": "toml", ".sh": "bash"}
MOST_BYTES = 200_000


def site_path(target: Path) -> str:
    """Return the page of the site for a file or folder of the repository."""
    path = target.relative_to(ROOT)
    if path.parts[0] == "docs" and target.is_file():
        return path.relative_to("docs").as_posix()
    if path.as_posix() in PROJECT_PAGES:
        return f"project/{path}"
    if path.suffix == ".md":
        return f"files/{path.as_posix()}"
    return f"files/{path.as_posix()}.md"


def targets(text: str, source: Path) -> Iterator[Path]:
    """Yield every existing file or folder that a page links to."""
    for line, is_code in _lines(text):
        for link in () if is_code else LINK.finditer(line):
            target = _resolved(source, link["path"])
            if target is not None:
                yield target


def relinked(text: str, source: Path, page: str) -> str:
    """Return the text of a repository file for its page, with each relative link leading to a page of the site.

    A link to nothing stays as it is: the strict build reports it. In tables, a code host needs a backslash before a bar
    inside code, and the site shows it; it is left out.
    """
    lines = []
    for line, is_code in _lines(text):
        if not is_code:
            line = LINK.sub(lambda link: _relink(link, source, page), line)
            if line.startswith("|"):
                line = CODE_IN_TABLE.sub(lambda code: code[0].replace("\\|", "|"), line)
        lines.append(line)
    return "\n".join(lines)


def page_of(target: Path) -> str:
    """Return the Markdown of the page that shows a file or folder outside of docs/."""
    name = target.relative_to(ROOT).as_posix()
    if target.is_dir():
        names = sorted(
            each.name + ("/" if each.is_dir() else "") for each in target.iterdir() if each.name[0] not in "._"
        )
        readme = target / "README.md"
        head = relinked(readme.read_text(), readme, site_path(target)) if readme.exists() else f"# {name}/\n"
        return head + "\n\n" + "\n".join(f"- `{each}`" for each in names) + "\n"
    if target.suffix == ".md":
        return relinked(target.read_text(), target, site_path(target))
    text = target.read_bytes()[:MOST_BYTES].decode("utf-8", "replace")
    return f"# {name}\n\n````{LANGUAGES.get(target.suffix, 'text')}\n{text.rstrip()}\n````\n"


def _relink(link: re.Match[str], source: Path, page: str) -> str:
    target = _resolved(source, link["path"])
    if target is None:
        return link[0]
    path = posixpath.relpath(site_path(target), posixpath.dirname(page) or ".")
    return f"{link['before']}{path}{link['anchor'] or ''}{link['after']}"


def _resolved(source: Path, path: str) -> Path | None:
    target = (source.parent / path).resolve()
    return target if target.exists() and target.is_relative_to(ROOT) and target != ROOT else None


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each line, and whether it is inside a block of code."""
    fence = ""
    for line in text.split("\n"):
        marker = FENCE.match(line)
        if marker and not fence:
            fence = marker[2]
            yield line, True
        elif marker and line.strip().startswith(fence):
            fence = ""
            yield line, True
        else:
            yield line, bool(fence)
