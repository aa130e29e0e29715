"""The contracts of the HTTP interface, each tested from its document, against a running `ksana serve`."""
