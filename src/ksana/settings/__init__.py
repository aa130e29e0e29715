"""The settings: declared in `table`, found by `load`, described in docs/reference/settings.md."""

from ksana.settings.loading import Loaded, load
from ksana.settings.table import Settings, settings_table
from ksana.settings.urls import endpoint, masked

__all__ = ["Loaded", "Settings", "endpoint", "load", "masked", "settings_table"]
