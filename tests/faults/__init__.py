"""Faults: real instances of Ksana on real servers, which are killed, frozen and cut off, and a checker that counts what was lost.

`python -m tests.faults --only F1,F5 --seed 7` runs scenarios; `test_gate.py` runs the small size of each. What counts is what the
target saw (`witness.py`), never what Ksana says of itself.
"""
