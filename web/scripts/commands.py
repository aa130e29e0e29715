"""Writes the commands that ask a running Ksana, and the requests they stand for, to a file."""

import json
import os
import sys
from pathlib import Path

from ksana.cli.client.calls import CALLS

if __name__ == "__main__":
    told = [{"form": each.form, "method": each.method, "path": each.path} for each in CALLS.values()]
    file = Path(sys.argv[1])
    new = file.with_suffix(f".{os.getpid()}")  # whoever reads it meanwhile reads one or the other
    new.write_text(json.dumps(told))
    new.replace(file)
