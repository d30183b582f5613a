# SPDX-License-Identifier: Apache-2.0
"""Checks of arguments. They run in the caller's frame: an error found later, while packets are sent, would end calls of
others."""

from math import isfinite
from numbers import Real

MAX_UINT32 = (1 << 32) - 1


def whole(name: str, value: object, most: int) -> None:
    """A whole number from 0 to most."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: give a whole number")
    if not 0 <= value <= most:
        raise ValueError(f"{name} is {value}: give a number from 0 to {most}")


def seconds(name: str, value: object) -> None:
    """A time to wait."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: give a number of seconds")
    try:
        fits = isfinite(value) and float(value) > 0
    except OverflowError:
        fits = False
    if not fits:
        raise ValueError(f"{name} is {value}: give a number of seconds above 0")


def flag(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}: give True or False")


def text(name: str, value: object) -> None:
    """A string that can be sent in an HTTP request."""
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}: give a string")
    value.encode()  # lone surrogates raise a UnicodeEncodeError, which is a ValueError


def bytes_of(value: object) -> bytes:
    """A body that nobody can change any more."""
    if isinstance(value, bytes):
        return value
    try:
        return bytes(memoryview(value))  # type: ignore[arg-type]  # it raises a TypeError for what has no bytes
    except TypeError:
        raise TypeError(f"body is of type {type(value).__name__}: give bytes") from None
