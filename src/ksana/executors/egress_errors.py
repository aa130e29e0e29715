"""What can go wrong between us and a target: one tree. What it means in words is in `http_errors`.

    EgressError
    ├── Denied         the policy refuses the target
    ├── NotConnected   nothing was sent: `cause` is the system's error
    │   ├── Unresolved     the name leads nowhere
    │   └── NoTls          no TLS, `verified` false if because the certificate is not to be trusted
    ├── BrokenOff      the connection was lost before an answer came
    ├── Incomplete     the connection was lost in the middle of the answer's body
    └── NotHttp        what came is no answer, or its head is too large

ConnectTimeout is a TimeoutError: nothing was sent, because no connection stood in time.
"""

import ssl


class EgressError(Exception):
    """A request came to no good end."""


class Denied(EgressError):
    """The policy refuses this target.

    `reason` is for the log alone: told to whoever made the job, it would say what a name of the private network leads to.
    """

    def __init__(self, host: str, reason: str) -> None:
        super().__init__(f"{host} is not allowed as a target")
        self.host = host
        self.reason = reason


class NotConnected(EgressError):
    """There is no connection to the target, and nothing was sent."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class Unresolved(NotConnected):
    """The target's name leads nowhere, or could not be looked up."""


class NoTls(NotConnected):
    """The target takes connections, but no TLS came about."""

    @property
    def complaint(self) -> str | None:
        """What is wrong with the certificate, if that is the reason."""
        if not isinstance(self.cause, ssl.SSLCertVerificationError):
            return None
        return self.cause.verify_message or "it could not be verified"


class BrokenOff(EgressError):
    """The connection was lost before an answer came. Whether the target has done the work is not known."""


class Incomplete(EgressError):
    """The connection was lost before the body of the answer had come to its end."""


class NotHttp(EgressError):
    """What came back is no HTTP/1, or has a head beyond all bounds."""


class ConnectTimeout(TimeoutError):
    """No connection stood within the time for connecting; nothing was sent."""
