"""The settings of one shard, kept in step with its SchedulingShard object and the Config."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from kube.objects.config import Config, SchedulingShard
from kube.resources import CONFIGS, SHARDS
from kube.store import Store
from scheduler.core.errors import ConfigError
from scheduler.loop.usage_feed import UsageFeed, make_feed
from scheduler.settings.shard import CONFIG_NAME, DEFAULT_SHARD, ShardSettings, settings_of
from scheduler.settings.usage import UsageConfigError, with_connection

log = logging.getLogger(__name__)


@dataclass(slots=True)
class SettingsFollower:
    """Reads the settings of a shard from a store.

    Attributes
    ----------
    folder : where the shard's usage history is kept; None for nowhere
    current : the settings of the last valid object; defaults before the first one
    usage : past usage as the settings ask for it; None if they do not
    error : why the present object is not used; "" if it is
    is_known : False for a shard other than `default` whose object is gone, or was never valid
    """

    shard: str
    store: Store
    folder: Path | None = None
    current: ShardSettings = field(default_factory=ShardSettings)
    usage: UsageFeed | None = None
    error: str = ""
    is_known: bool = field(init=False)
    _source: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        """Treat the default shard as known: it runs without an object, too."""
        self.is_known = self.shard == DEFAULT_SHARD

    def refresh(self) -> bool:
        """Read the objects if they changed; return whether new settings were taken from them.

        An object with a wrong value is reported, and the old settings stay.
        """
        shard: SchedulingShard | None = self.store.get(SHARDS, self.shard)
        config: Config | None = self.store.get(CONFIGS, CONFIG_NAME)
        source = (shard.spec if shard else None, config.spec if config else None)
        if source == self._source:
            return False
        self._source = source
        if shard is None and self.shard != DEFAULT_SHARD:
            self.is_known = False
            return False
        try:
            settings = settings_of(self.shard, shard, config)
            usage_config = with_connection(shard.spec.usage_db_config if shard else None, config)
            usage = make_feed(usage_config, self.folder, self.shard)
        except (ConfigError, UsageConfigError) as error:
            self.error = str(error)
            log.error("shard %s keeps its old settings: %s", self.shard, error)
            return False
        self.current, self.usage = settings, usage
        self.error, self.is_known = "", True
        return True
