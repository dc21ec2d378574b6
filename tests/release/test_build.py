"""What a release contains, and that it depends on nothing but the commit."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EPOCH = "1700000000"


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "deploy" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_wheel(output: Path) -> Path:
    """Build the wheel as the release does, where it needs no built dashboard."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "-d", str(output)],
        cwd=ROOT, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, check=True, capture_output=True,
    )  # fmt: skip
    return next(output.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.mark.integration
def test_the_wheel_holds_the_packages_and_what_kaiweb_up_installs_into_a_cluster(wheel: Path):
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {"kaiweb/__main__.py", "sandbox/apiserver/data/kubernetes.json.xz"} <= names
    for kind in ("crds", "defaults", "rbac"):
        files = {file.name for file in (ROOT / "deploy" / kind).iterdir()}
        assert files == {
            Path(name).name for name in names if name.startswith(f"kaiweb/deploy/{kind}/")
        }
    tops = {name.partition("/")[0] for name in names}
    assert not tops & {"tests", "docs", "deploy", "requirements"}


@pytest.mark.integration
def test_the_wheel_has_the_program_and_the_plugin_of_kubectl(wheel: Path):
    archive = zipfile.ZipFile(wheel)
    entry_points = next(name for name in archive.namelist() if name.endswith("entry_points.txt"))

    text = archive.read(entry_points).decode()

    assert "kaiweb = kaiweb.__main__:main" in text
    assert "kubectl-kai = kaiweb.terminal.program:kubectl_plugin" in text


@pytest.mark.integration
def test_the_same_sources_give_the_same_wheel(wheel: Path, tmp_path: Path):
    assert build_wheel(tmp_path).read_bytes() == wheel.read_bytes()


def test_a_chart_is_packed_to_the_same_bytes_whatever_the_times_of_its_files(
    release: ModuleType, tmp_path: Path
):
    chart = tmp_path / "kai"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("name: kai\n")
    (chart / "templates" / "a.yaml").write_text("kind: List\n")
    (tmp_path / "crds").mkdir()
    (tmp_path / "crds" / "b.yaml").write_text("kind: List\n")
    (chart / "crds").symlink_to(Path("..") / "crds")
    release.pack(chart, tmp_path / "first.tgz", 1_700_000_000)
    os.utime(chart / "Chart.yaml", (5, 5))
    (chart / "templates" / "a.yaml").chmod(0o600)

    release.pack(chart, tmp_path / "second.tgz", 1_700_000_000)

    assert (tmp_path / "first.tgz").read_bytes() == (tmp_path / "second.tgz").read_bytes()
    with tarfile.open(tmp_path / "first.tgz") as archive:
        assert archive.getnames() == ["kai/Chart.yaml", "kai/crds/b.yaml", "kai/templates/a.yaml"]


@pytest.mark.integration
def test_the_bill_of_materials_lists_the_locked_packages_with_hashes(
    release: ModuleType, tmp_path: Path
):
    file = tmp_path / "bill.json"

    release.write_bill_of_materials(ROOT, os.environ, file)

    bill = json.loads(file.read_text())
    by_name = {component["name"]: component for component in bill["components"]}
    lock = (ROOT / "requirements" / "run.txt").read_text()
    assert bill["metadata"]["component"]["name"] == "kaiweb"
    assert f"django=={by_name['django']['version']} " in lock
    hashes = by_name["django"]["externalReferences"][0]["hashes"]
    assert all(entry["content"] in lock for entry in hashes)
    assert len(hashes) >= 2


def test_without_a_built_dashboard_the_release_says_what_to_do(release: ModuleType, tmp_path: Path):
    with pytest.raises(release.ReleaseError, match="run `make setup` first"):
        release.build(tmp_path, tmp_path / "dist")


def test_the_checksums_name_every_file(release: ModuleType, tmp_path: Path):
    (tmp_path / "a.whl").write_bytes(b"abc")

    lines = release.write_checksums(tmp_path)

    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert lines == [f"{digest}  a.whl"]
    assert (tmp_path / release.SUMS).read_text() == f"{digest}  a.whl\n"
