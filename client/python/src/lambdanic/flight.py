# SPDX-License-Identifier: Apache-2.0
"""A sequence of packets that are sent until each is confirmed, at most a window of them at once.

Intervals are docs/protocol.md's. The window follows TCP's additive increase and multiplicative decrease (RFC 5681), with a floor that
keeps enough packets coming behind a lost one to notice the loss.
"""

from math import inf

FIRST_INTERVAL = 0.020  # seconds
LAST_INTERVAL = 0.500

FIRST_WINDOW = 64
MIN_WINDOW = 32
MAX_WINDOW = 512

REORDER_LIMIT = 8  # a packet counts as lost once a packet sent so many transmissions later is confirmed


class _Slot:
    """A packet that was sent and is not confirmed."""

    __slots__ = ("sent", "order", "tries", "lost")

    def __init__(self) -> None:
        self.sent = 0.0
        self.order = 0  # of its last transmission
        self.tries = 0
        self.lost = False

    def interval(self) -> float:
        """How long to wait for a confirmation before sending again."""
        return min(FIRST_INTERVAL * (1 << min(self.tries, 5)), LAST_INTERVAL)


class Flight:
    """It is told the time, and sends nothing itself."""

    def __init__(self, count: int, once: bool, *, confirmed: int = 0) -> None:
        self.count = count  # packets in all
        self.once = once  # never send a packet twice
        self.next = confirmed  # the first packet that was never sent
        self.window = FIRST_WINDOW
        self.expiry = inf  # no packet expires before
        self._granted: int | None = None  # packets that the receiver has allowed so far, once it grants any
        self._slots: dict[int, _Slot] = {}  # by index, which ascends
        self._lost = 0  # to be sent again
        self._threshold = MAX_WINDOW  # where doubling the window per round trip ends
        self._credit = 0  # confirmations towards the next single step
        self._sends = confirmed  # transmissions so far
        self._newest = 0  # the latest transmission known to have arrived
        self._scanned = 0  # newest, when last looked for lost packets
        self._recovery = 0  # losses among transmissions up to here have been paid for
        self._doubts = 0

    @property
    def base(self) -> int:
        """Every packet before it is confirmed."""
        return next(iter(self._slots), self.next)

    @property
    def done(self) -> bool:
        return self.next == self.count and not self._slots

    def sendable(self) -> bool:
        """Whether there is a packet to send now."""
        if len(self._slots) - self._lost >= self.window:
            return False
        limit = self.count if self._granted is None else min(self.count, self._granted)
        return self._lost > 0 or self.next < min(limit, self.base + MAX_WINDOW)

    def grant(self, packets: int) -> None:
        """Takes in what an acknowledgement grants: 0 is no limit. The largest grant stands."""
        self._granted = max(packets, self._granted or FIRST_WINDOW) if packets else None

    def pick(self, now: float) -> tuple[int, bool]:
        """Takes a packet as sent now, lost ones first. Returns its index, and whether it was sent before."""
        if self._lost:
            self._lost -= 1
            index = next(i for i, slot in self._slots.items() if slot.lost)
            self._sent(self._slots[index], now)
            return index, True
        index = self.next
        self.next += 1
        slot = self._slots[index] = _Slot()
        self._sent(slot, now)
        return index, False

    def _sent(self, slot: _Slot, now: float) -> None:
        self._sends += 1
        slot.sent, slot.order, slot.lost = now, self._sends, False
        if not self.once:
            self.expiry = min(self.expiry, now + slot.interval())

    def confirm(self, index: int) -> bool:
        """Says that a packet arrived. Returns whether that is news."""
        slot = self._slots.pop(index, None)
        if slot is None:
            return False
        if slot.lost:
            self._lost -= 1
        if slot.tries == 0:  # else nobody knows which transmission arrived (Karn and Partridge, SIGCOMM 1987)
            self._newest = max(self._newest, slot.order)
        self._grow()
        return True

    def confirm_all(self) -> None:
        self._slots.clear()
        self.next, self._lost, self.expiry = self.count, 0, inf

    def doubt(self, now: float) -> None:
        """Takes the last packet's confirmation back, for when all packets are confirmed and yet no answer came."""
        slot = self._slots[self.count - 1] = _Slot()
        slot.tries = self._doubts
        self._doubts = min(self._doubts + 1, 8)
        self._sent(slot, now)

    def expire(self, now: float) -> None:
        """Finds the packets that are lost by now: those that waited for too long, and those that many later ones overtook."""
        if self.once or now < self.expiry and self._newest - self._scanned < REORDER_LIMIT:
            return
        self._scanned, self.expiry = self._newest, inf
        for slot in self._slots.values():
            due = slot.sent + slot.interval()
            if slot.lost:
                continue
            if due > now and slot.order + REORDER_LIMIT > self._newest:
                self.expiry = min(self.expiry, due)
            else:
                self._lose(slot)

    def _lose(self, slot: _Slot) -> None:
        slot.lost = True
        slot.tries = min(slot.tries + 1, 8)
        self._lost += 1
        if slot.order > self._recovery:  # once per window, not once per packet
            self._recovery = self._sends
            self.window = self._threshold = max(self.window // 2, MIN_WINDOW)

    def _grow(self) -> None:
        if self.window >= MAX_WINDOW:
            return
        if self.window < self._threshold:
            self.window += 1
            return
        self._credit += 1
        if self._credit >= self.window:
            self._credit = 0
            self.window += 1
