"""The house keeps its form: what ships, what imports what, and that Dask stays Dask."""

import ast
import doctest
import importlib
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("distributed", "tiling", "models", "mapping")
MAY_IMPORT = {
    "distributed": {"distributed"},
    "tiling": {"tiling"},
    "models": {"models", "tiling", "distributed"},
    "mapping": {"mapping", "models", "tiling", "distributed"},
}
OF_THE_ROOT = {"OrthoTraceError", "__version__"}
"""What every folder may import from the root itself."""

SETUP = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def files(suffix: str = ".py") -> list[Path]:
    found = [p for folder in FOLDERS for p in (ROOT / folder).rglob(f"*{suffix}")]
    return sorted(p for p in found if "__pycache__" not in p.parts)


def imports(code: str) -> Iterator[tuple[str, int]]:
    """Each imported module, with its number of leading dots; `from .. import a, b` may be two."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, 0) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, node.level
        elif isinstance(node, ast.ImportFrom):
            yield from ((alias.name, node.level) for alias in node.names)


def test_every_folder_of_code_ships() -> None:
    wanted = {"orthotrace"} | {
        "orthotrace." + ".".join(p.relative_to(ROOT).parent.parts) for p in files()
    }
    assert wanted <= set(SETUP["packages"])


def test_every_other_file_ships_too() -> None:
    globs = {
        package.removeprefix("orthotrace").lstrip("."): patterns
        for package, patterns in SETUP["package-data"].items()
    }
    for path in (p for p in files("") if p.is_file()):
        if path.suffix != ".py":
            folder = ".".join(path.relative_to(ROOT).parent.parts)
            assert any(path.match(pattern) for pattern in globs.get(folder, ())), path


def test_no_folder_is_a_package_of_its_own_and_dask_is_dask() -> None:
    assert not list(ROOT.glob("*/__init__.py"))
    code = "import dask.distributed, distributed; print(distributed.__file__)"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "site-packages" in told.stdout


def test_the_root_imports_nothing_and_nothing_else_stands_there() -> None:
    assert list(imports((ROOT / "__init__.py").read_text())) == []
    assert {p.name for p in ROOT.glob("*.py")} == {"__init__.py", "__main__.py"}


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_import_goes_up_a_storey(path: Path) -> None:
    assert list(wrong_imports(path.read_text(), path.relative_to(ROOT).parts)) == []


def wrong_imports(code: str, parts: tuple[str, ...]) -> Iterator[str]:
    """What a module imports against the rules; `parts` is its place below the root."""
    for module, dots in imports(code):
        first = module.split(".")[0]
        if dots == 0 and first in {*FOLDERS, "orthotrace"}:
            yield f"import {module}: say it by dots"
        elif dots == len(parts) and first not in MAY_IMPORT[parts[0]] | OF_THE_ROOT:
            yield f"{parts[0]} imports {module}"  # by as many dots as lead to the root


@pytest.mark.parametrize(
    "code",
    [
        "from ..models import card",
        "from ..models.card import Card",
        "from .. import models",
        "from .. import OrthoTraceError, mapping",
        "import orthotrace.models",
        "def late():\n    from .. import distributed",
    ],
)
def test_an_import_that_goes_up_is_seen_in_any_form(code: str) -> None:
    assert len(list(wrong_imports(code, ("tiling", "grid.py")))) == 1


def test_an_import_from_below_is_right_in_any_form() -> None:
    code = "from ... import OrthoTraceError, tiling\nfrom ...models.card import Card\nimport json"
    assert list(wrong_imports(code, ("mapping", "tracing", "trace.py"))) == []


@pytest.mark.parametrize("path", files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_examples_in_docstrings_run(path: Path) -> None:
    if ">>>" in path.read_text():
        name = ".".join(("orthotrace", *path.relative_to(ROOT).with_suffix("").parts))
        assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_configuration_flows_without_double_stars() -> None:
    """`**kwargs` swallows misspelt configuration: no function of ours takes them."""
    for path in files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg:
                told = ast.unparse(node)
                assert node.name in ALLOWED_DOUBLE_STARS, f"{path}: {told.splitlines()[0]}"


ALLOWED_DOUBLE_STARS = {"write_lock", "collect"}
"""Where double stars are the data itself, or what a library passes to a hook of its own."""


def test_a_wheel_holds_the_code_and_its_data(tmp_path: Path) -> None:
    source = tmp_path / "source"  # a copy, since setuptools leaves its own build folder behind
    shutil.copytree(ROOT, source, ignore=shutil.ignore_patterns(".*", "data", "build", "tests"))
    build = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "--wheel-dir"]
    subprocess.run([*build, tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("orthotrace-*.whl")
    shipped = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"orthotrace/{p.relative_to(ROOT)}" for p in files("") if p.is_file()}
    assert wanted | {"orthotrace/py.typed", "orthotrace/__init__.py"} <= shipped
