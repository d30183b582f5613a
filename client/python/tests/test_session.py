# SPDX-License-Identifier: Apache-2.0
"""What a session sends, and makes of what it gets, on networks good and bad."""

import unittest

from lambdanic.errors import DeadlineExceeded, ReplyTooLarge, RequestTooLarge, Stale, TooLarge, UnknownWorkload
from lambdanic.packet import parse
from lambdanic.session import Options, Reply, Request
from lambdanic.wire import FRAGMENT, HEADER_LEN, MAX_MESSAGE, MAX_PAYLOAD, Code, Flag, Header, Type

from .network import REVISION, Network, Server


def text(length: int) -> bytes:
    return (bytes(range(251)) * (length // 251 + 1))[:length]


class TestCalls(unittest.TestCase):
    def test_every_length_arrives_whole(self) -> None:
        for length in (0, 1, 512, 513, MAX_PAYLOAD, MAX_PAYLOAD + 1, 2 * FRAGMENT, 65 * FRAGMENT + 4, 200 * FRAGMENT):
            for reply in (0, 1, 5000, 100_000):
                answer = text(reply)
                network = Network(Server(handle=lambda body, answer=answer: answer + body[:9]), seed=length)  # type: ignore[misc]
                [call] = network.call(Request(1, text(length)))
                self.assertEqual(call.outcome(), Reply(answer + text(length)[:9], 0, REVISION, 0), (length, reply))
                self.assertEqual((network.stats.resent, network.stats.malformed, network.server.records), (0, 0, {}))

    def test_what_is_lost_is_sent_again(self) -> None:
        for seed in range(8):
            server = Server()
            network = Network(server, seed, loss=0.2, twice=0.1, options=Options(timeout=60))
            requests = [Request(1, text(n * 911), reply_room=300 * (n % 3)) for n in range(30)]
            calls = network.call(*requests)
            for request, call in zip(requests, calls, strict=True):
                self.assertEqual(call.reply and call.reply.body, request.body)
            self.assertEqual(sum(call.reply.resends for call in calls if call.reply), network.stats.resent)
            self.assertGreater(network.stats.resent, 0)
            self.assertLess(network.stats.resent, network.stats.sent / 2)

    def test_resends_are_marked_and_spaced(self) -> None:
        silence = Network(Server(), seed=1, loss=1.0)
        [call] = silence.call(Request(1, b"hello", deadline=2.0))
        self.assertIsInstance(call.error, DeadlineExceeded)
        self.assertAlmostEqual(silence.now, 2.0)
        # 0, 20, 60, 140, 300, 620, 1120, 1620 ms
        self.assertEqual([bool(parse(p)[0].flags & Flag.RESEND) for p in silence.sent], [False] + [True] * 7)

    def test_without_resend(self) -> None:
        silence = Network(Server(), seed=1, loss=1.0, options=Options(timeout=1, resend=False))
        [call] = silence.call(Request(1, text(5000)))
        self.assertIsInstance(call.error, DeadlineExceeded)
        self.assertEqual(len([p for p in silence.sent if parse(p)[0].type == Type.REQUEST]), 4)

    def test_time_out_is_without_progress(self) -> None:
        """A call without a deadline may take longer than the time-out, as long as something gets through."""
        network = Network(Server(), seed=3, delay=0.2, options=Options(timeout=1.0))
        [call] = network.call(Request(1, text(1_000_000)))
        self.assertIsNone(call.error)
        self.assertGreater(network.now, 1.0)

    def test_window(self) -> None:
        """No more than 64 packets are sent before something comes back."""
        silence = Network(Server(), seed=1, loss=1.0, options=Options(resend=False))
        silence.call(Request(1, text(1_000_000), deadline=0.001))
        self.assertEqual(len([p for p in silence.sent if parse(p)[0].type == Type.REQUEST]), 64)


class TestRoom(unittest.TestCase):
    def test_padding(self) -> None:
        for asked, padded in ((0, 512), (100, 100), (4, 5), (9000, MAX_PAYLOAD)):
            network = Network(Server(), seed=1)
            network.call(Request(1, b"hello", reply_room=asked))
            self.assertEqual(len(network.sent[0]) - HEADER_LEN, padded)

    def test_what_a_reply_took_is_remembered(self) -> None:
        network = Network(Server(handle=lambda body: text(900)), seed=1)
        network.call(Request(1, method=3))
        self.assertEqual(len(network.sent), 3)  # request, pull, release
        network.call(Request(1, method=3))
        self.assertEqual(len(network.sent), 4)
        network.call(Request(1, method=4))
        self.assertEqual(len(network.sent), 7)

    def test_too_little_starts_over(self) -> None:
        room = {"need": 1200}

        def refuse(header: Header) -> tuple[int, int]:
            return (Code.TOO_LARGE, room["need"]) if header.type == Type.REQUEST else (0, 0)

        network = Network(Server(refuse=refuse), seed=1)
        [call] = network.call(Request(1))
        self.assertIsInstance(call.error, TooLarge)
        self.assertEqual([len(packet) - HEADER_LEN for packet in network.sent], [512, 1200])


class TestErrors(unittest.TestCase):
    def test_error_packets(self) -> None:
        for code in Code:
            network = Network(Server(refuse=lambda header, code=code: (code, 0)), seed=1)  # type: ignore[misc]
            calls = network.call(Request(1), Request(1, text(5000)))
            for call in calls:
                self.assertEqual(getattr(call.error, "code", None), code)
            self.assertEqual(network.stats.restarts, 16 if code == Code.STALE else 0)
            self.assertIsInstance(calls[0].error, Stale if code == Code.STALE else Exception)
        unknown = Network(Server(refuse=lambda header: (99, 0)), seed=1)
        [call] = unknown.call(Request(1))
        self.assertIn("error 99: unknown reason", str(call.error))

    def test_sizes(self) -> None:
        network = Network(Server(handle=lambda body: text(1001)), seed=1, options=Options(max_reply=1000))
        [call] = network.call(Request(1))
        self.assertIsInstance(call.error, ReplyTooLarge)
        with self.assertRaises(RequestTooLarge):
            network.session.start(Request(1, bytes(MAX_MESSAGE + 1)), 1, 0)

    def test_what_the_network_said(self) -> None:
        network = Network(Server(), seed=1, loss=1.0)
        network.session.network_said(ConnectionRefusedError("nobody there"), 0.0)
        [call] = network.call(Request(1, deadline=0.1))
        self.assertIsInstance(call.error and call.error.__cause__, ConnectionRefusedError)
        [call] = network.call(Request(1, deadline=0.1))  # the network's error is older than this call
        self.assertIsNone(call.error and call.error.__cause__)

    def test_cancelled(self) -> None:
        network = Network(Server(), seed=1)
        call = network.session.start(Request(1, text(5000)), 1, 0.0)
        packets, _ = network.session.poll(0.0)
        [release] = network.session.cancel(call)
        header, _ = parse(release)
        self.assertEqual((header.type, header.flags, header.request), (Type.ACK, Flag.DONE, parse(packets[0])[0].request))
        self.assertEqual(network.session.cancel(call), [])
        self.assertEqual(network.session.poll(100.0)[0], [])

    def test_unknown_workload(self) -> None:
        network = Network(Server(refuse=lambda header: (Code.UNKNOWN_WORKLOAD, 0)), seed=1)
        [call] = network.call(Request(1))
        self.assertIsInstance(call.outcome(), UnknownWorkload)
