"""A wheel has the workloads of `mooring bench` beside the package; everything else stands in pyproject.toml."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithWorkloads(build_py):
    """Copies bench/*.yaml to mooring/bench, where an installed package looks for them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        folder = Path(self.build_lib) / "mooring" / "bench"
        self.mkpath(str(folder))
        for path in sorted(Path(__file__).parent.glob("bench/*.yaml")):
            self.copy_file(str(path), str(folder / path.name))


setup(cmdclass={"build_py": BuildWithWorkloads})
