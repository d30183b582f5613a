# SPDX-License-Identifier: Apache-2.0
"""Calls lambdas by λ-RPC (docs/protocol.md): Client for threads, AsyncClient for asyncio. Ikernels serve an application's sockets."""

from .aio import AsyncClient
from .client import Client
from .errors import (
    BadTag,
    Busy,
    Closed,
    DeadlineExceeded,
    Error,
    GatewayError,
    IkernelError,
    IkernelFault,
    LambdaFault,
    Malformed,
    NoSuchFunction,
    NotesFull,
    OverQuota,
    RegisterDiffers,
    ReplyTooLarge,
    RequestTooLarge,
    RPCError,
    ServiceTimeout,
    Stale,
    TooLarge,
    TooLate,
    UnknownWorkload,
    Unreachable,
)
from .gateway import Function, Gateway
from .ikernel import IKERNEL_SOCKET, Ikernel, Ikernels
from .notes import Notes
from .parity import Shard
from .ring import Message, Ring, RingCounts
from .session import Reply, Request, Stats
from .wire import Code, Status

__all__ = [
    "AsyncClient", "BadTag", "Busy", "Client", "Closed", "Code", "DeadlineExceeded", "Error", "Function", "Gateway", "GatewayError",
    "IKERNEL_SOCKET", "Ikernel", "IkernelError", "IkernelFault", "Ikernels", "LambdaFault", "Malformed", "Message", "NoSuchFunction", "Notes",
    "NotesFull", "OverQuota", "RPCError", "RegisterDiffers", "Reply", "ReplyTooLarge", "Request", "RequestTooLarge", "Ring",
    "RingCounts", "ServiceTimeout", "Shard", "Stale", "Stats", "Status", "TooLarge", "TooLate", "UnknownWorkload", "Unreachable",
]  # fmt: skip
