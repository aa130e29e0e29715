"""The families of the table as trees of commands, each made when it is asked for: `jobs` and the like are attributes here."""

from cyclopts import App

from ksana.cli.client.calls import CALLS, GROUPS


def __getattr__(name: str) -> App:
    """AttributeError if there is no such family. `runs stop` is `stop_` of `ksana.cli.client.runs`."""
    if name not in GROUPS:
        raise AttributeError(name)
    family = App(name=name, help=GROUPS[name])
    for key, call in CALLS.items():
        if call.words[0] == name and key == " ".join(call.words):  # else it is another request of the same command
            function = f"{call.words[-1].replace('-', '_')}_"
            family.command(f"ksana.cli.client.{name}:{function}", name=call.words[-1], help=call.meaning)
    return family
