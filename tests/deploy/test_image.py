"""What can be checked of Dockerfile, .dockerignore and compose.yaml without a Docker daemon."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
DOCKERFILE = (CHECKOUT / "Dockerfile").read_text()
COPIES = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)
SOURCES = [source for line in COPIES for source in line.split()]


def compose() -> dict[str, dict[str, object]]:
    services: dict[str, dict[str, object]] = yaml.safe_load(
        (CHECKOUT / "compose.yaml").read_text()
    )["services"]
    return services


def test_every_copied_file_exists_and_is_sent_to_the_build() -> None:
    lines = (CHECKOUT / ".dockerignore").read_text().splitlines()
    sent = {line.removeprefix("!") for line in lines if line.startswith("!")}
    for source in SOURCES:
        assert (CHECKOUT / source).exists(), source
        assert source.split("/")[0] in sent, source


def test_the_sdist_is_a_context_for_the_images() -> None:
    # The sdist holds what Git keeps (hatchling), so images can be built from it as from a checkout.
    needed = [".dockerignore", "Dockerfile", *SOURCES]
    files = subprocess.run(
        ["git", "ls-files", "--", *needed], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for path in needed:
        assert any(file == path or file.startswith(f"{path}/") for file in files), path


def test_the_image_holds_every_package_of_the_project() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    shipped = project["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    packages = {path for path in shipped if "/" not in path}
    copied = {source.split("/")[0] for source in SOURCES}
    assert packages <= copied
    # Of the folder frontend only these are Python; the pages come from the stage that builds them.
    assert {"frontend/__init__.py", "frontend/dashboard"} <= set(SOURCES)


def test_packages_of_the_image_are_pinned_by_hash() -> None:
    for line in re.findall(r"pip install (.+?)(?: && |$)", DOCKERFILE, re.MULTILINE):
        is_locked = "--require-hashes" in line
        is_own = "--no-deps" in line or "hatchling" in line
        assert is_locked or is_own, line
    assert "npm ci --ignore-scripts" in DOCKERFILE


def test_the_image_runs_without_rights_of_root() -> None:
    assert re.findall(r"^USER (.+)$", DOCKERFILE, re.MULTILINE) == ["10000:10000"]
    assert DOCKERFILE.rstrip().endswith("FROM kaiweb")


def test_lock_files_name_no_index() -> None:
    for file in (CHECKOUT / "requirements").glob("*.txt"):
        assert "index-url" not in file.read_text()
        assert "://" not in file.read_text()


def test_compose_publishes_ports_on_this_host_only() -> None:
    ports = [port for service in compose().values() for port in service.get("ports", [])]  # type: ignore[attr-defined]
    assert ports
    assert all(str(port).startswith("127.0.0.1:") for port in ports)


def test_compose_takes_its_secrets_from_the_environment() -> None:
    text = (CHECKOUT / "compose.yaml").read_text()
    for name in ("KAIWEB_SECRET_KEY", "DB_PASSWORD", "REDIS_PASSWORD"):
        assert re.search(r"\$\{" + name + r":\?", text), name
    assert not re.search(r"password: *[a-z0-9]", text, re.IGNORECASE)


def test_compose_limits_what_containers_may_do() -> None:
    for service in compose().values():
        assert service["security_opt"] == ["no-new-privileges:true"]
    assert compose()["kaiweb"]["user"] == "10000:10000"
    assert compose()["kaiweb"]["read_only"] is True


def test_the_packages_of_gpu_nodes_are_those_of_the_image_nvml_and_grpc() -> None:
    run, gpu = (
        set((CHECKOUT / "requirements" / name).read_text().splitlines())
        for name in ("run.txt", "gpu.txt")
    )
    assert run <= gpu
    assert {line.split("==")[0] for line in gpu - run if "==" in line} == {"grpcio", "nvidia-ml-py"}
