"""The commands of kubectl: verbs and options by its own help, kinds by discovery and our CRDs, keys by our constants."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from kube import keys
from sandbox.apiserver.data.bundle import bundle
from tests.docs.shown.kaiweb_commands import check_kaiweb
from tests.docs.shown.options import Arguments, arguments_of, kubectl_options
from tests.docs.shown.pages import ROOT
from tests.docs.shown.shell import Command
from tests.integration.stack import kubectl_path

#: Verbs that have verbs of their own.
GROUPS = frozenset({"config", "create", "rollout", "auth", "set", "top"})
#: Verbs whose first argument is a kind, or kind/name.
OF_KINDS = frozenset({"get", "delete", "describe", "annotate", "label", "patch", "scale", "wait"})
#: Verbs whose first argument is a pod, or kind/name.
OF_PODS = frozenset({"logs", "exec", "port-forward"})
OUR_PREFIXES = ("kaiweb.dev/", "kai.scheduler/")


def check_kubectl(command: Command) -> None:
    """Check one command; `kubectl kai` is the terminal of kaiweb."""
    if command.words[1] == "kai":
        if words := [word for word in command.words[2:] if word != "..."]:
            check_kaiweb(words)
        return
    verb, arguments = parsed(command.words[1:])
    if arguments.rest[:1] == ["kaiweb"]:
        check_kaiweb(arguments.rest[1:])
    for name, value in arguments.options:
        if name in {"-f", "--filename"} and value != "-":
            assert (ROOT / value).exists(), f"no file {value}"
    _check_kinds(verb, arguments)
    if verb in {"annotate", "label"}:
        _check_keys(arguments.positional[2:])


def parsed(words: tuple[str, ...]) -> tuple[str, Arguments]:
    """Return verb and arguments of a command, without those that name the verb."""
    place = _place_of_verb(words, 0)
    places = {place}
    if words[place] in GROUPS:
        places.add(_place_of_verb(words, place + 1))
    verb = [words[place] for place in sorted(places)]
    others = [word for place, word in enumerate(words) if place not in places]
    return " ".join(verb), arguments_of(others, general_options() | verb_options(*verb))


def _place_of_verb(words: tuple[str, ...], start: int) -> int:
    """Return where the next verb stands, behind options that every verb has."""
    while words[start].startswith("-"):
        name, has_value, _ = words[start].partition("=")
        start += 2 if general_options()[name] and not has_value else 1
    return start


@cache
def general_options() -> dict[str, bool]:
    return kubectl_options(_output("options"))


@cache
def verb_options(*verb: str) -> dict[str, bool]:
    text = _output(*verb, "--help")
    usage = text.rpartition("Usage:\n")[2].splitlines()[0].split()
    # An unknown verb below a group prints the help of the group.
    assert usage[1 : 1 + len(verb)] == list(verb), f"kubectl has no verb {' '.join(verb)}"
    return kubectl_options(text) | {"--help": False}


def _output(*words: str) -> str:
    result = subprocess.run([kubectl_path(), *words], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def _check_kinds(verb: str, arguments: Arguments) -> None:
    first = arguments.positional[:1]
    kinds: list[str] = []
    if verb in OF_KINDS or verb == "rollout status":
        kinds = first[0].split(",") if first else []
    elif verb in OF_PODS:
        kinds = [name for name in first if "/" in name]
    for kind in kinds:
        kind = kind.partition("/")[0]
        # Capitals are to be filled in by the reader.
        assert kind.isupper() or kind.lower() in kinds_of_a_cluster(), f"no kind {kind}"


@cache
def kinds_of_a_cluster() -> frozenset[str]:
    """Return all names under which kubectl knows the built-in kinds and ours."""
    names: set[str] = set()
    for group_version, entries in bundle().groups.items():
        group = group_version.rpartition("/")[0]
        for entry in entries:
            of_kind = {entry["name"], entry["singularName"], *entry.get("shortNames", ())}
            names |= of_kind | {entry["kind"].lower(), f"{entry['name']}.{group}"}
    for crd in our_definitions():
        spoken = crd["spec"]["names"]
        names |= {crd["metadata"]["name"], spoken["plural"], spoken["kind"].lower()}
        names |= {spoken.get("singular", spoken["plural"]), *spoken.get("shortNames", ())}
    return frozenset(names - {""})


@cache
def our_definitions() -> tuple[dict[str, Any], ...]:
    files = sorted((ROOT / "deploy" / "crds").glob("*.yaml"))
    return tuple(doc for file in files for doc in yaml.safe_load_all(file.read_text()) if doc)


def _check_keys(changes: list[str]) -> None:
    """Check that the keys of ours that a command sets or removes are read by the product."""
    constants = {value for value in vars(keys).values() if isinstance(value, str)}
    for change in changes:
        key = change.partition("=")[0].removesuffix("-")
        assert not key.startswith(OUR_PREFIXES) or key in constants, f"nothing reads {key}"


def patched_object(command: Command) -> dict[str, Any] | None:
    """Return the object of ours with the fields of `kubectl patch`, None for other commands."""
    if command.program != "kubectl" or "patch" not in command.words:
        return None
    verb, arguments = parsed(command.words[1:])
    if verb != "patch":
        return None
    kind, name = arguments.positional
    definition = next(
        crd for crd in our_definitions() if crd["spec"]["names"]["kind"].lower() == kind
    )
    names, group = definition["spec"]["names"], definition["spec"]["group"]
    version = definition["spec"]["versions"][0]["name"]
    patch = json.loads(arguments.value("-p", "--patch") or "{}")
    identity = {"apiVersion": f"{group}/{version}", "kind": names["kind"]}
    return {**identity, "metadata": {"name": name}, **patch}


def manifest_files() -> list[Path]:
    return sorted((ROOT / "docs" / "examples").glob("*.yaml"))
