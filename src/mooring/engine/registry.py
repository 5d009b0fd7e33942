"""All plugins by name: ours, those from a user's file, those of installed packages."""

import importlib.util
import sys
from collections.abc import Iterable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType

from mooring.engine.plugin import Plugin
from mooring.errors import ConfigError

ENTRY_POINT_GROUP = "mooring.plugins"


class Registry:
    """Plugin classes by name, each name once."""

    def __init__(self, shipped: Iterable[type[Plugin]]) -> None:
        self.classes: dict[str, type[Plugin]] = {}
        self.from_files: list[str] = []
        """Names that came from files given on the command line."""
        for plugin in shipped:
            self.add(plugin, "mooring")

    def add(self, plugin: type[Plugin], source: str) -> None:
        name = plugin.__name__
        if name in self.classes:
            raise ConfigError(source, name, expected="a plugin name that is not taken", found=f'"{name}" again')
        self.classes[name] = plugin

    def add_file(self, path: Path) -> None:
        """Add every plugin class that a Python file defines."""
        module = _import_file(path)
        found = list(_plugins_of(module))
        if not found:
            expected = "at least one class that inherits Filter, Score or another ability of mooring.plugin"
            raise ConfigError(str(path), "", expected=expected, found="none")
        for plugin in found:
            self.add(plugin, str(path))
            self.from_files.append(plugin.__name__)

    def add_installed(self) -> None:
        """Add the plugins of installed packages: entry points of the group mooring.plugins."""
        for point in entry_points(group=ENTRY_POINT_GROUP):
            try:
                loaded = point.load()
            except Exception as error:  # a package's fault must not be a traceback of ours
                raise ConfigError(
                    f"entry point {point.name}", point.value, expected="a plugin class", found=_one_line(error)
                ) from error
            for plugin in [loaded] if isinstance(loaded, type) else list(_plugins_of(loaded)):
                self.add(plugin, f"entry point {point.name}")


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise ConfigError(str(path), "", expected="a Python file", found="no such file")
    name = f"mooring_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(str(path), "", expected="a Python file", found=f"a file named {path.name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and typing look the module up by name
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # whatever a user's file raises, its author gets one line
        sys.modules.pop(name, None)
        line = _line_in(path, error)
        raise ConfigError(str(path), line, expected="a plugin file that loads", found=_one_line(error)) from error
    return module


def _plugins_of(module: ModuleType) -> Iterator[type[Plugin]]:
    for value in vars(module).values():
        if isinstance(value, type) and issubclass(value, Plugin) and value.__module__ == module.__name__:
            yield value


def _line_in(path: Path, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}"
    trace, line = error.__traceback__, 0
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).resolve() == path.resolve():
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"line {line}" if line else ""


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())
