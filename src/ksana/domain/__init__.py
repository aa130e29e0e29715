"""The vocabulary and the rules. Pure: no I/O, no clock, no framework; `now`, ids and randomness are arguments."""
