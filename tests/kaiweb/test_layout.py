"""Which process gets which credentials."""

from __future__ import annotations

from pathlib import Path

import pytest

from kaiweb.supervisor.layout import (
    ACCOUNTS,
    EMBEDDED_PORTS,
    Installation,
    read_installation,
    specs,
)

PORTS = dict.fromkeys(EMBEDDED_PORTS, 12345)


def _plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, accounts: Path | None) -> Installation:
    monkeypatch.setenv("KAIWEB_KUBECONFIG", str(tmp_path / "admin"))
    monkeypatch.setenv("KAIWEB_SIMULATE", "1")
    if accounts:
        monkeypatch.setenv("KAIWEB_ACCOUNTS", str(accounts))
    return read_installation(tmp_path, PORTS)


def test_every_process_gets_the_kubeconfig_of_its_account(tmp_path, monkeypatch):
    for account in ACCOUNTS:
        (tmp_path / f"{account}.kubeconfig").touch()
    listed = {spec.name: spec for spec in specs(_plan(tmp_path, monkeypatch, tmp_path))}
    used = {
        name: Path(spec.env["KAIWEB_KUBECONFIG"]).stem
        for name, spec in listed.items()
        if name not in ("broker", "simulators", "beat")
    }
    assert used == {
        "web": "web",
        "mirror": "web",
        "worker": "web",
        "controllers": "controllers",
        "scheduling-default": "scheduler",
        "binding": "binder",
    }
    # The simulators play kubelets: they keep the installation's credentials.
    assert str(tmp_path / "admin") in listed["simulators"].command


def test_without_accounts_all_use_the_kubeconfig_of_the_installation(tmp_path, monkeypatch):
    listed = specs(_plan(tmp_path, monkeypatch, None))
    assert not any("KAIWEB_KUBECONFIG" in spec.env for spec in listed)


def test_a_missing_kubeconfig_of_an_account_is_named(tmp_path, monkeypatch):
    (tmp_path / "web.kubeconfig").touch()
    with pytest.raises(ValueError, match=r"expected controllers\.kubeconfig in .*, found none"):
        _plan(tmp_path, monkeypatch, tmp_path)
