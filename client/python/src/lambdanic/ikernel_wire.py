# SPDX-License-Identifier: Apache-2.0
# Generated from api/ikernel/wire.go by api/genheader. Do not edit.
"""Constants of api/ikernel/wire.go."""

from enum import IntEnum

HEADER_LEN = 8
MAX_PACKET = 4096
MAX_NAME = 32
MAX_NAMESPACE = 63
MAX_REGISTERS = 16
REGISTER_LEN = 36
TRANSACTION_LEN = 272
MAX_RINGS = 128
RINGS_LEN = 12
RING_COUNTS_LEN = 16
RING_HEAD_LEN = 48
RINGS_POLLED = 1


class Operation(IntEnum):
    CREATE = 1
    DESTROY = 2
    ATTACH = 3
    DETACH = 4
    TRANSACT = 5
    RINGS = 6
    RING_COUNTS = 7
    NOTES = 8
    DELIVER = 9
    FAULT = 10
