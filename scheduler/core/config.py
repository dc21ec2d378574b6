"""The configuration of a scheduler: the options of its cycles, and its plugins with their arguments.

`scheduler/core/plugins/table.py` lists the plugins there are.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.errors import ConfigError
from scheduler.core.options import CycleOptions
from scheduler.core.plugins.table import PLUGINS, spec_of


@dataclass(frozen=True, slots=True)
class PluginConfig:
    """One plugin with its arguments; without arguments it gets the defaults."""

    name: str
    arguments: object = None

    def __post_init__(self) -> None:
        """Refuse unknown plugins and arguments of another plugin."""
        spec = spec_of(self.name)
        if self.arguments is None:
            object.__setattr__(self, "arguments", spec.arguments())
        spec.checked(self.arguments)


#: The plugins that are on by default, in the order of their priorities.
DEFAULT_PLUGINS = tuple(PluginConfig(spec.name) for spec in PLUGINS if spec.on_by_default)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerConfig(CycleOptions):
    """Everything a scheduler is told; plugins are opened in the order given here."""

    plugins: tuple[PluginConfig, ...] = DEFAULT_PLUGINS

    def __post_init__(self) -> None:
        """Refuse a plugin that is listed twice, and options that make no sense."""
        CycleOptions.__post_init__(self)
        names = [plugin.name for plugin in self.plugins]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"plugin {name} is listed more than once")

    def has_plugin(self, name: str) -> bool:
        """Return whether the plugin is on."""
        return any(plugin.name == name for plugin in self.plugins)
