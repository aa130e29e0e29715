"""The tree of commands. Help reads the commands' modules, so what only running needs is imported in their functions."""

from cyclopts import App, Group

from ksana import __version__
from ksana.cli.client.calls import ALONE, CALLS, GROUPS

app = App(
    name="ksana",
    help="Decides when work runs, runs it, and accounts for every instant.",
    version=f"ksana {__version__}",
)
config = App(name="config", help="The settings.")

app.command("ksana.cli.serve:serve", name="serve", help="Start Ksana: the scheduler, the workers and the API.")
app.command("ksana.cli.serve:worker", name="worker", help="Start workers alone, on a database that others share.")
app.command("ksana.cli.migrate:migrate", name="migrate", help="Bring the database's schema to this version.")
app.command("ksana.cli.doctor:doctor", name="doctor", help="Check the database and how it is set up.")
app.command("ksana.cli.audit:audit", name="audit", help="Check that every planned instant is accounted for.")
app.command("ksana.cli.purge:purge", name="purge", help="Remove what has been kept long enough.")
app.command(config)
config.command("ksana.cli.config:show", name="show", help="Print every setting and where it came from.")

_asking = Group("Commands that ask a running Ksana", sort_key=1)
for _name, _meaning in GROUPS.items():
    app.command(f"ksana.cli.client.tree:{_name}", name=_name, help=_meaning, group=_asking)
for _name in ALONE:
    app.command(f"ksana.cli.client.{_name}:{_name}_", name=_name, help=CALLS[_name].meaning, group=_asking)
