# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a call, and what to do about it."""

from errno import EIO
from typing import ClassVar

from .wire import Code, Fault


class Error(Exception):
    """The base of all errors of this package."""


class DeadlineExceeded(Error, TimeoutError):
    """No answer came in time. The cause is the network's last error, if any."""

    def __init__(self, message: str = "no answer in time") -> None:
        super().__init__(message)


class RequestTooLarge(Error, ValueError):
    """The body needs more packets than the protocol can count: split it."""


class ReplyTooLarge(Error):
    """The reply is longer than max_reply allows: raise that."""


class Closed(Error):
    """The client was closed, or a ring or the notes of an ikernel."""


class GatewayError(Error):
    """The gateway refused, or the server is not a gateway: check its address and the credentials."""


class NoSuchFunction(GatewayError, LookupError):
    """The gateway knows no function of that name."""


class IkernelError(Error):
    """The daemon refused, or cannot be reached. errno says what kind of error it is; None: nothing said so."""

    def __init__(self, message: str, errno: int | None) -> None:
        super().__init__(message)
        self.errno = errno


class IkernelFault(IkernelError):
    """An ikernel gave up. Its sockets get all of their datagrams again; its registers and rings can still be read. code says why, if fault
    or wait_fault gave it, and the message says the same."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message, EIO)
        self.code = code


class RegisterDiffers(IkernelError):
    """A register had another value than a transaction expected. Nothing was written."""


class NotesFull(Error):
    """There is no room for a note until those before are delivered."""


class RPCError(Error):
    """An error packet: the server's reason not to answer. Each code of the protocol is a subclass."""

    reason: ClassVar[str] = "unknown reason"

    def __init__(self, code: int, need: int = 0) -> None:
        super().__init__(f"λ-RPC error {code}: {self.reason}{self._detail(need)}")
        self.code = code
        self.need = need  # with TooLarge: bytes of room that one packet would need; 0: no size is enough

    def _detail(self, need: int) -> str:
        return f": {need} bytes of room are needed" if need else ""


class UnknownWorkload(RPCError):
    reason = "unknown workload: look the lambda's name up again"


class OverQuota(RPCError):
    reason = "over quota: slow down"


class BadTag(RPCError):
    reason = "bad tag: check the namespace's key"


class Malformed(RPCError):
    reason = "malformed packet"


_FAULTS: dict[int, str] = {
    Fault.OWN: "the lambda gave the request up: RETURN_FAULT, abort(), or a reply that does not fit",
    Fault.TIME: "it ran longer than limits.time",
    Fault.BOUNDS: "it used an address outside of its memory",
    Fault.RECURSION: "it called itself too deep",
    Fault.MEMORY: "it asked for more memory than there is",
    Fault.DIVISION: "it divided by zero",
    Fault.CRASH: "its process died",
}


class LambdaFault(RPCError):
    reason = "the lambda failed on this request"

    def __init__(self, code: int, fault: int = 0) -> None:
        super().__init__(code, fault)
        self.need = 0
        self.fault = fault  # a Fault; 0: the server does not say

    def _detail(self, need: int) -> str:
        why = _FAULTS.get(need)
        return (f": {why}" if why else "") + ": see `lambdanic describe NAME`"


class TooLarge(RPCError):
    reason = "request or reply too large"


class Busy(RPCError):
    reason = "busy: try again later"


class ServiceTimeout(RPCError):
    reason = "an external service did not answer in time"


class Unreachable(RPCError):
    reason = "an external service cannot be reached"


class Stale(RPCError):
    reason = "the revision or reply is gone: start over"


class TooLate(RPCError, DeadlineExceeded):
    reason = "the deadline was over before the lambda could answer"


_BY_CODE: dict[int, type[RPCError]] = {
    Code.UNKNOWN_WORKLOAD: UnknownWorkload,
    Code.OVER_QUOTA: OverQuota,
    Code.BAD_TAG: BadTag,
    Code.MALFORMED: Malformed,
    Code.LAMBDA_FAULT: LambdaFault,
    Code.TOO_LARGE: TooLarge,
    Code.BUSY: Busy,
    Code.TIMEOUT: ServiceTimeout,
    Code.UNREACHABLE: Unreachable,
    Code.STALE: Stale,
    Code.DEADLINE: TooLate,
}


def error_of(code: int, need: int = 0) -> RPCError:
    """The error of an error packet's code. For a LambdaFault, need is its Fault."""
    return _BY_CODE.get(code, RPCError)(code, need)
