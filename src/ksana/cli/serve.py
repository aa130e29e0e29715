"""`ksana serve`."""

import gc
from dataclasses import asdict
from typing import Annotated

from cyclopts import Parameter

from ksana.cli.options import DEFAULTS, SERVE_DEFAULTS, Options, ServeOptions, setting_flag
from ksana.domain.errors import InvalidSetting
from ksana.domain.instance import Role
from ksana.settings import Loaded
from ksana.settings.values import is_loopback
from ksana.telemetry import configure_logging, log


def serve(
    *,
    serving: ServeOptions = SERVE_DEFAULTS,
    insecure: Annotated[bool, Parameter(negative="", help="Listen beyond loopback, open to all.")] = False,
    options: Options = DEFAULTS,
) -> int:
    """Start Ksana: the scheduler, the workers and the API."""
    return start(options.load(**asdict(serving)), insecure=insecure)


def worker(
    *,
    queues: Annotated[str | None, setting_flag("--queues")] = None,
    name: Annotated[str | None, setting_flag("--name")] = None,
    host: Annotated[str | None, setting_flag("--host")] = None,
    port: Annotated[str | None, Parameter(help="Port of /health and /metrics; a free one if nobody says.")] = None,
    insecure: Annotated[bool, Parameter(negative="", help="Listen beyond loopback, open to all.")] = False,
    options: Options = DEFAULTS,
) -> int:
    """Start workers alone, for the queues that they are to serve."""
    flags = {"host": host, "port": port, "roles": Role.WORKER.value, "queues": queues, "name": name}
    loaded = options.load(**flags)
    if loaded.sources["server.port"] == "default":  # an instance with an API may be on this machine, too
        loaded = options.load(**flags | {"port": "0"})
    return start(loaded, insecure=insecure)


def start(loaded: Loaded, *, insecure: bool) -> int:
    """One instance, until it is told to stop."""
    refuse_open_address(loaded, insecure=insecure)
    configure_logging(loaded.settings.logging.level, loaded.settings.logging.format)
    for note in loaded.notes:
        log().warning(note, action="settings.doubtful")
    gc.disable()  # until it answers: to look for garbage in what is being loaded is a tenth of the start, and finds none
    try:
        from ksana.cli.process import run  # noqa: PLC0415 - help and errors need none of what this imports

        run(loaded)
    finally:
        gc.enable()
    return 0


def refuse_open_address(loaded: Loaded, *, insecure: bool) -> None:
    """InvalidSetting if others could reach this server: there is no authentication yet."""
    host = loaded.settings.server.host
    if not insecure and not is_loopback(host):
        told = f"{host} can be reached from other machines, and Ksana has no authentication yet: whoever reaches it can run"
        way_out = "anything. Use 127.0.0.1, or --insecure if the network is closed or a proxy checks who calls"
        raise InvalidSetting("server.host", f"{told} {way_out}", source=loaded.sources["server.host"])
