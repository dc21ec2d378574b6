"""Preparing a cluster: definitions always, default objects only where they are missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from kaiweb import install
from kaiweb.management.commands import bootstrap
from kube.errors import ServerError
from kube.resources import CRDS, QUEUES
from queues.models import LiveEpoch
from scheduler.models import Shard
from tests.fakes.gateway import FakeGateway


def queue(name: str, quota: int = 0) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2", "kind": "Queue", "metadata": {"name": name},
        "spec": {"resources": {"gpu": {"quota": quota}}},
    }  # fmt: skip


def test_our_own_files_are_all_readable_and_known() -> None:
    deploy = Path(settings.KAIWEB_DEPLOY)
    definitions = install.documents(deploy / "crds")
    assert {doc["kind"] for doc in definitions} == {"CustomResourceDefinition"}
    assert {doc["spec"]["names"]["kind"] for doc in definitions} == {
        "Queue", "PodGroup", "BindRequest", "Config", "SchedulingShard", "Topology",
    }  # fmt: skip
    defaults = install.documents(deploy / "defaults")
    assert {(doc["apiVersion"], doc["kind"]) for doc in defaults} <= set(install.KINDS)
    names = {(doc["kind"], doc["metadata"]["name"]) for doc in defaults}
    assert {("Queue", "default-parent-queue"), ("Queue", "default-queue")} <= names


def test_definitions_are_applied_again_and_again() -> None:
    gateway = FakeGateway()
    definitions = install.documents(Path(settings.KAIWEB_DEPLOY) / "crds")
    for _start in range(2):
        install.apply_definitions(gateway, definitions)
    assert len(gateway.names(CRDS)) == 6


def test_default_objects_that_people_changed_are_not_overwritten() -> None:
    gateway = FakeGateway()
    assert install.create_missing(gateway, [queue("a"), queue("b")]) == ["Queue a", "Queue b"]
    gateway.patch(QUEUES, "a", {"spec": {"resources": {"gpu": {"quota": 9}}}})
    gateway.delete(QUEUES, "b")
    assert install.create_missing(gateway, [queue("a"), queue("b")]) == ["Queue b"]
    assert gateway.raw(QUEUES, "a")["spec"]["resources"]["gpu"]["quota"] == 9


def test_a_restart_does_not_wait_for_the_webhooks_of_the_same_installation() -> None:
    gateway = FakeGateway()
    install.create_missing(gateway, [queue("a")])
    webhook_error = ServerError('failed calling webhook "queue-validation.kai.scheduler": refused')
    gateway.fail_next("create", "queues", webhook_error)
    assert install.create_missing(gateway, [queue("a"), queue("b"), queue("c")]) == ["Queue c"]
    gateway.fail_next("create", "queues", ServerError("disk full"))
    with pytest.raises(ServerError, match="disk full"):
        install.create_missing(gateway, [queue("d")])


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [1")
    with pytest.raises(install.InstallError, match=r"bad\.yaml: expected YAML"):
        install.documents(tmp_path)
    (tmp_path / "bad.yaml").write_text("just text")
    with pytest.raises(install.InstallError, match=r"bad\.yaml: expected objects with a name"):
        install.documents(tmp_path)


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(install.InstallError, match="Pizza of food/v1: not a kind"):
        install.create_missing(
            FakeGateway(), [{"apiVersion": "food/v1", "kind": "Pizza", "metadata": {"name": "x"}}]
        )


@pytest.mark.django_db
def test_bootstrap_is_idempotent_and_makes_one_admin(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = FakeGateway()
    monkeypatch.setattr(bootstrap, "gateway", lambda: gateway)
    settings.KAIWEB_HOME = tmp_path
    settings.KAIWEB_SHARDS = ["default"]
    for _start in range(2):
        call_command("bootstrap", verbosity=0)
    user = User.objects.get()
    password = (tmp_path / "admin-password").read_text().strip()
    assert (user.username, user.is_superuser, user.check_password(password)) == (
        "admin",
        True,
        True,
    )
    assert (tmp_path / "admin-password").stat().st_mode & 0o077 == 0
    assert set(gateway.names(QUEUES)) >= {"default-parent-queue", "default-queue"}
    assert (Shard.objects.get().name, LiveEpoch.objects.count()) == ("default", 1)


@pytest.mark.django_db
def test_bootstrap_fails_with_the_error_of_a_cluster_that_does_not_answer(
    tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = FakeGateway()
    gateway.fail_next("patch", "customresourcedefinitions", ServerError("connection refused"))
    monkeypatch.setattr(bootstrap, "gateway", lambda: gateway)
    settings.KAIWEB_HOME = tmp_path
    with pytest.raises(CommandError, match="cannot prepare the cluster: connection refused"):
        call_command("bootstrap", verbosity=0)


def test_waiting_ends_once_the_migrations_are_applied() -> None:
    answers = iter(["3 migrations are not applied", "the database does not answer", ""])
    pauses: list[float] = []
    bootstrap.wait_for_migrations(lambda: next(answers), sleep=pauses.append)
    assert pauses == [bootstrap.POLL_S, bootstrap.POLL_S]


def test_waiting_ends_with_the_reason_when_nobody_applies_the_migrations() -> None:
    moments = iter([0.0, 1.0, 601.0])
    with pytest.raises(CommandError, match="not ready after 600 s: 3 migrations are not applied"):
        bootstrap.wait_for_migrations(
            lambda: "3 migrations are not applied",
            sleep=lambda _: None,
            clock=lambda: next(moments),
        )


def test_waiting_makes_the_state_folder_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster the init container creates the folder, below a mount that belongs to root."""
    monkeypatch.setattr(settings, "KAIWEB_HOME", tmp_path / "home")
    monkeypatch.setattr(bootstrap, "MigrationsCheck", lambda: lambda: "")
    call_command("bootstrap", "--wait")
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
