# SPDX-License-Identifier: Apache-2.0
"""When packets are sent, and when they count as lost."""

import unittest

from lambdanic.flight import MAX_WINDOW, MIN_WINDOW, REORDER_LIMIT, Flight


def send_all(flight: Flight, now: float) -> list[tuple[int, bool]]:
    sent = []
    while flight.sendable():
        sent.append(flight.pick(now))
    return sent


class TestFlight(unittest.TestCase):
    def test_overtaken_packet_is_lost(self) -> None:
        for overtaken, lost in ((REORDER_LIMIT - 1, []), (REORDER_LIMIT, [(0, True)])):
            flight = Flight(20, once=False)
            send_all(flight, 0.0)
            for index in range(overtaken):
                flight.confirm(index + 1)
            flight.expire(0.001)
            self.assertEqual(send_all(flight, 0.001), lost)

    def test_late_packets_are_lost_and_shrink_the_window_once(self) -> None:
        flight = Flight(1000, once=False)
        self.assertEqual(len(send_all(flight, 0.0)), 64)
        flight.expire(0.0199)
        self.assertFalse(flight.sendable())
        flight.expire(0.0201)
        self.assertEqual(flight.window, MIN_WINDOW)
        self.assertEqual(send_all(flight, 0.0201), [(index, True) for index in range(MIN_WINDOW)])
        flight.expire(0.0601)
        self.assertEqual(flight.window, MIN_WINDOW)

    def test_window_grows_to_its_limit_from_the_first_unconfirmed_packet(self) -> None:
        flight = Flight(5000, once=True)
        while sent := [index for index, _ in send_all(flight, 0.0) if index > 0]:
            for index in sent:
                flight.confirm(index)
        self.assertEqual((flight.base, flight.next), (0, MAX_WINDOW))
        flight.confirm(0)
        self.assertEqual(flight.base, MAX_WINDOW)
        self.assertTrue(flight.sendable())

    def test_grants(self) -> None:
        flight = Flight(1000, once=False)
        self.assertEqual(len(send_all(flight, 0.0)), 64)
        for index in range(64):
            flight.confirm(index)
        for packets, sent in ((80, 16), (70, 0), (90, 10)):
            flight.grant(packets)
            self.assertEqual(len(send_all(flight, 0.0)), sent)
        flight.grant(0)
        self.assertGreater(len(send_all(flight, 0.0)), 64)

    def test_news(self) -> None:
        flight = Flight(3, once=False)
        send_all(flight, 0.0)
        self.assertEqual([flight.confirm(index) for index in (1, 1, 7, 0, 2)], [True, False, False, True, True])
        self.assertTrue(flight.done)
        flight.doubt(1.0)
        self.assertEqual((flight.done, flight.base), (False, 2))
        flight.expire(1.021)
        self.assertEqual(send_all(flight, 1.021), [(2, True)])
