# SPDX-License-Identifier: Apache-2.0
# Generated from api/wire.go by api/genheader. Do not edit.
"""What λ-RPC's packets look like: constants and header (docs/protocol.md)."""

from enum import IntEnum, IntFlag
from struct import Struct
from typing import NamedTuple

PORT = 4370
MAGIC = 955
VERSION = 1
HEADER_LEN = 64
MAX_PAYLOAD = 1408
FRAGMENT = 1376
MAX_MESSAGE = 94371840
ASK_AFTER = 3


class Type(IntEnum):
    REQUEST = 1
    RESPONSE = 2
    ACK = 3
    PULL = 4
    ERROR = 5


class Flag(IntFlag):
    TAG = 1
    TAG_PAYLOAD = 2
    ACK_WANTED = 4
    DONE = 8
    RESEND = 16
    ONCE = 32
    ODD_KEY = 64
    REGION = 128


class Code(IntEnum):
    UNKNOWN_WORKLOAD = 1
    OVER_QUOTA = 2
    BAD_TAG = 3
    MALFORMED = 4
    LAMBDA_FAULT = 5
    TOO_LARGE = 6
    BUSY = 7
    TIMEOUT = 8
    UNREACHABLE = 9
    STALE = 10
    DEADLINE = 11


class Fault(IntEnum):
    OWN = 1
    TIME = 2
    BOUNDS = 3
    RECURSION = 4
    MEMORY = 5
    DIVISION = 6
    CRASH = 7


class Status(IntEnum):
    OK = 0
    NOT_FOUND = 1
    BAD_REQUEST = 2
    FAILED = 3
    SERVICE_ERROR = 4
    HTTP400 = 100


class Header(NamedTuple):
    """The fields in the order in which they stand."""

    magic: int = 955
    version: int = 1
    type: int = 0
    flags: int = 0
    code: int = 0
    length: int = 0
    workload: int = 0
    revision: int = 0
    request: int = 0
    index: int = 0  # type: ignore[assignment]  # hides a method of tuple
    count: int = 0  # type: ignore[assignment]  # hides a method of tuple
    message_len: int = 0
    method: int = 0
    deadline_us: int = 0
    client: int = 0
    sequence: int = 0
    grant: int = 0
    tag: int = 0


LAYOUT = Struct(">HBBBBHIIQIIIIIIIIQ")
