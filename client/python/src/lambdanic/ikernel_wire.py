# SPDX-License-Identifier: Apache-2.0
# Generated from api/ikernel/wire.go by api/genheader. Do not edit.
"""Constants of api/ikernel/wire.go."""

from enum import IntEnum

HEADER_LEN = 8
MAX_PACKET = 4096
MAX_NAME = 32
MAX_REGISTERS = 16
REGISTER_LEN = 36
TRANSACTION_LEN = 272


class Operation(IntEnum):
    CREATE = 1
    DESTROY = 2
    ATTACH = 3
    DETACH = 4
    TRANSACT = 5
