"""Configs that have been worked out, so that an attempt has only its own part to add."""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson

from ksana.executors.http_request import Prepared, Sender, prepare

KEPT = 8_192
"""Jobs. One takes some 6 KB, and a hundred microseconds to be worked out."""
KEPT_BYTES = 8_000_000
"""Of all configs as JSON; what is kept of them is about five times that."""
LARGEST_KEPT = 16_384
"""Bytes of a config as JSON: larger ones are worked out for each attempt."""


class PreparedJobs:
    """By what the config says, to the letter: neither a job that was changed nor a copy of one can be mistaken for another."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._known: OrderedDict[bytes, Prepared] = OrderedDict()
        self._bytes = 0

    def of(self, config: Mapping[str, Any]) -> Prepared:
        try:
            written = orjson.dumps(config)
        except TypeError:  # nothing that was stored, but anyone may call with anything
            return prepare(config, self._sender)
        found = self._known.get(written)
        if found is not None:
            self._known.move_to_end(written)
            return found
        made = prepare(config, self._sender)
        if len(written) <= LARGEST_KEPT:
            self._known[written] = made
            self._bytes += len(written)
            while len(self._known) > KEPT or self._bytes > KEPT_BYTES:
                self._bytes -= len(self._known.popitem(last=False)[0])
        return made
