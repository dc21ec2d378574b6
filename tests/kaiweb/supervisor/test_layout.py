"""Which processes there are, and which gets which credentials."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kaiweb.settings.env import EnvError
from kaiweb.supervisor.broker import broker_password
from kaiweb.supervisor.desired import DesiredProcesses
from kaiweb.supervisor.layout import (
    ACCOUNTS,
    EMBEDDED_PORTS,
    Installation,
    check_environment,
    metrics_port_name,
    read_installation,
    specs,
    specs_with_ports,
)
from sandbox.nodes.profiles import profile

PORTS = dict.fromkeys(EMBEDDED_PORTS, 12345)


def _plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accounts: Path | None) -> Installation:
    (tmp_path / "admin").touch()
    monkeypatch.setenv("KAIWEB_KUBECONFIG", str(tmp_path / "admin"))
    monkeypatch.setenv("KAIWEB_SIMULATE", "1")
    if accounts:
        monkeypatch.setenv("KAIWEB_ACCOUNTS", str(accounts))
    check_environment()
    return read_installation(tmp_path, dict(PORTS))


def test_every_process_gets_the_kubeconfig_of_its_account(tmp_path, monkeypatch):
    for account in ACCOUNTS:
        (tmp_path / f"{account}.kubeconfig").touch()
    listed = {
        spec.name: spec
        for spec in specs(_plan(tmp_path, monkeypatch, tmp_path), DesiredProcesses())
    }
    used = {
        name: Path(spec.env["KAIWEB_KUBECONFIG"]).stem
        for name, spec in listed.items()
        if name not in ("broker", "simulators", "beat")
    }
    assert used == {
        "web": "web",
        "mirror": "web",
        "worker": "web",
        "controllers": "pod-grouper",
        "scheduling-default": "scheduler",
        "binding": "binder",
        "operator": "operator",
        "simulations": "scheduler",
    }
    # The simulators play kubelets: they keep the installation's credentials.
    assert str(tmp_path / "admin") in listed["simulators"].command


def test_without_accounts_all_use_the_kubeconfig_of_the_installation(tmp_path, monkeypatch):
    listed = specs(_plan(tmp_path, monkeypatch, None), DesiredProcesses())
    assert not any("KAIWEB_KUBECONFIG" in spec.env for spec in listed)


def test_a_missing_kubeconfig_of_an_account_is_named(tmp_path, monkeypatch):
    (tmp_path / "web.kubeconfig").touch()
    with pytest.raises(ValueError, match=r"expected pod-grouper\.kubeconfig in .*, found none"):
        _plan(tmp_path, monkeypatch, tmp_path)


def test_each_shard_has_a_worker_with_a_queue_and_a_metrics_port_of_its_own(tmp_path, monkeypatch):
    plan = _plan(tmp_path, monkeypatch, None)
    plan.ports[metrics_port_name("amber")] = 23456
    listed = {spec.name: spec for spec in specs(plan, DesiredProcesses(shards=("amber",)))}
    amber, default = listed["scheduling-amber"], listed["scheduling-default"]
    assert amber.command[amber.command.index("-Q") + 1] == "shard.amber"
    assert amber.env["KAIWEB_SCHEDULER_METRICS_PORT"] == "23456"
    # The default shard runs whether or not it is on record.
    assert default.env["KAIWEB_SCHEDULER_METRICS_PORT"] == "12345"


def test_a_new_shard_gets_a_port_that_stays_and_is_listed(tmp_path, monkeypatch):
    (tmp_path / "ports.json").write_text(json.dumps(PORTS))
    plan = _plan(tmp_path, monkeypatch, None)
    (first,) = (
        spec
        for spec in specs_with_ports(plan, DesiredProcesses(shards=("amber",)))
        if spec.name == "scheduling-amber"
    )
    listed = json.loads((tmp_path / "ports.json").read_text())
    assert listed == {**PORTS, "scheduler-metrics-amber": plan.ports["scheduler-metrics-amber"]}
    assert first.env["KAIWEB_SCHEDULER_METRICS_PORT"] == str(listed["scheduler-metrics-amber"])
    # Another shard, and the first one again: no port moves while its process runs.
    again = specs_with_ports(plan, DesiredProcesses(shards=("amber", "birch")))
    assert first in again


def test_each_worker_of_the_mirror_is_a_process_that_knows_its_part(tmp_path, monkeypatch):
    plan = _plan(tmp_path, monkeypatch, None)
    one = {spec.name: spec for spec in specs(plan, DesiredProcesses())}
    assert one["mirror"].command[-1] == "mirror_cluster"
    monkeypatch.setenv("KAIWEB_MIRROR_WORKERS", "3")
    monkeypatch.setenv("DATABASE_URL", "postgresql://user@127.0.0.1/kaiweb")
    several = {
        spec.name: spec
        for spec in specs(_plan(tmp_path, monkeypatch, None), DesiredProcesses())
        if "mirror_cluster" in spec.command
    }
    assert {name: spec.command[-4:] for name, spec in several.items()} == {
        "mirror": ("--worker", "0", "--workers", "3"),
        "mirror-1": ("--worker", "1", "--workers", "3"),
        "mirror-2": ("--worker", "2", "--workers", "3"),
    }
    # In a burst the rows come after the binds.
    assert {spec.niceness for spec in several.values()} == {one["mirror"].niceness} == {5}
    assert one["web"].niceness == 0


@pytest.mark.parametrize(
    ("count", "database", "problem"),
    [
        ("2", "", "expected 1, got 2: SQLite has one writer at a time"),
        ("0", "", "expected 1 to 16, got 0"),
        ("17", "postgresql://u@127.0.0.1/k", "expected 1 to 16, got 17"),
        ("two", "", "expected a whole number >= 0, got 'two'"),
    ],
)
def test_a_number_of_mirror_workers_that_cannot_work_is_refused(
    monkeypatch, count, database, problem
):
    monkeypatch.setenv("KAIWEB_MIRROR_WORKERS", count)
    monkeypatch.setenv("DATABASE_URL", database)
    with pytest.raises(EnvError, match=f"KAIWEB_MIRROR_WORKERS: {problem}"):
        check_environment()


def test_what_the_config_asks_for_reaches_the_processes_it_concerns(tmp_path, monkeypatch):
    desired = DesiredProcesses(
        off=("binding",),
        arguments={"controllers": ("--group-pods=false",)},
        environment={"web": {"KAIWEB_GPU_SHARING": "0"}},
    )
    plan = _plan(tmp_path, monkeypatch, None)
    plain = {spec.name: spec for spec in specs(plan, DesiredProcesses())}
    listed = {spec.name: spec for spec in specs(plan, desired)}
    assert set(plain) - set(listed) == {"binding"}
    assert listed["controllers"].command == (*plain["controllers"].command, "--group-pods=false")
    assert listed["web"].env == {**plain["web"].env, "KAIWEB_GPU_SHARING": "0"}
    changed = {name for name in listed if listed[name] != plain[name]}
    assert changed == {"controllers", "web"}


@pytest.mark.parametrize("nodes", ["demo", "none", "3x8", "9", "x8", "8x", "many", "3x8x1"])
def test_the_simulators_take_exactly_the_nodes_that_pass_the_check(nodes, monkeypatch):
    monkeypatch.setenv("KAIWEB_NODES", nodes)
    try:
        profile(nodes)
    except ValueError:
        with pytest.raises(EnvError, match=f"KAIWEB_NODES: expected demo, .*, got '{nodes}'"):
            check_environment()
    else:
        check_environment()


def test_a_shard_that_cannot_be_a_process_is_refused_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("KAIWEB_SHARDS", "default,Two Pools")
    with pytest.raises(ValueError, match="KAIWEB_SHARDS: expected names that are DNS labels, got"):
        _plan(tmp_path, monkeypatch, None)


def test_the_redis_of_the_user_is_used_as_given_and_no_broker_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("REDIS_URL", "rediss://:secret@redis.example:6380/3")
    plan = _plan(tmp_path, monkeypatch, None)
    listed = {spec.name: spec for spec in specs(plan, DesiredProcesses())}
    assert "broker" not in listed
    assert {spec.env["REDIS_URL"] for spec in listed.values()} == {
        "rediss://:secret@redis.example:6380/3"
    }


def test_the_password_of_the_own_broker_is_on_no_command_line(tmp_path, monkeypatch):
    monkeypatch.delenv("REDIS_URL", raising=False)
    plan = _plan(tmp_path, monkeypatch, None)
    listed = {spec.name: spec for spec in specs(plan, DesiredProcesses())}
    password = broker_password(tmp_path)
    assert listed["web"].env["REDIS_URL"] == f"redis://:{password}@127.0.0.1:12345/0"
    assert not [word for spec in listed.values() for word in spec.command if password in word]


def test_the_embedded_cluster_serves_the_gang_api_if_asked_to(tmp_path, monkeypatch):
    def command() -> list[str]:
        plan = read_installation(tmp_path, dict(PORTS))
        return next(
            list(spec.command) for spec in specs(plan, DesiredProcesses()) if spec.name == "cluster"
        )

    assert "--gangs" not in command()
    monkeypatch.setenv("KAIWEB_GANGS", "1")
    assert "--gangs" in command()
