"""The commands that ask a running Ksana, over HTTP. `calls` has all of them and the request behind each."""
