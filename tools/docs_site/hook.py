"""The hook of MkDocs: generated reference pages, and pages for files outside of docs/ that pages link to."""

from typing import Any

import command_reference
import event_reference
import metric_reference
import setting_reference
from mkdocs.structure.files import File, Files
from outside import PROJECT_PAGES, ROOT, page_of, relinked, site_path, targets

REFERENCES = {
    "reference/commands.md": command_reference.page,
    "reference/configuration.md": setting_reference.page,
    "reference/metrics.md": metric_reference.page,
    "reference/events.md": event_reference.page,
}
"""Pages that are made from the code at each build. The files in docs/ say so to readers of the repository."""


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not in docs/."""
    sources = [ROOT / "docs" / file.src_uri for file in files.documentation_pages() if file.generated_by is None]
    open_ = [*sources, *(ROOT / name for name in PROJECT_PAGES)]
    known = set(sources)
    while open_:
        source = open_.pop()
        if source not in known:
            known.add(source)
            if files.get_file_from_path(site_path(source)) is None:
                files.append(File.generated(config, site_path(source), content=page_of(source)))
        if source.suffix == ".md":
            open_ += [each for each in targets(source.read_text(), source) if each not in known]
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return a reference from the code, or the text of a page of docs/ with its links leading to pages of the site."""
    if page.file.src_uri in REFERENCES:
        return REFERENCES[page.file.src_uri]()
    if page.file.generated_by is not None:
        return markdown
    return relinked(markdown, ROOT / "docs" / page.file.src_uri, page.file.src_uri)
