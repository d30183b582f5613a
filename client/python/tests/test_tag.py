# SPDX-License-Identifier: Apache-2.0
"""Keys, and the tags that they make. What tagged calls say on the wire is test/conformance's."""

import io
import logging
import unittest
from unittest import mock

from lambdanic import AsyncClient, BadTag, Client, DeadlineExceeded
from lambdanic import tag as tags
from lambdanic.packet import encode, parse
from lambdanic.session import Options, Request, Session, Stats
from lambdanic.tag import Key, Tagger, siphash
from lambdanic.wire import MAX_PAYLOAD, Code, Flag, Header, Type

SECRET = bytes(range(16))
SECRET_TEXT = "AAECAwQFBgcICQoLDA0ODw"
TEXT = f"lnk1:tenant:7:{SECRET_TEXT}"

# Of the texts without bytes, with byte 0, with bytes 0 and 1 and so on (https://github.com/veorq/SipHash, vectors.h).
VECTORS = bytes.fromhex(
    "310e0edd47db6f72fd67dc93c539f8745a4fa9d909806c0d2d7efbd796666785b7877127e09427cf8da699cd64557618cee3fe586e46c9cb37d1018bf50002ab"
    "6224939a79f5f593b0e4a90bdf82009ef3b9dd94c5bb5d7aa7ad6b22462fb3f4fbe50e86bc8f1e75903d84c02756ea14eef27a8e90ca23f7e545be4961ca29a1"
)  # fmt: skip


def request(payload: bytes) -> bytes:
    return encode(Header(type=Type.REQUEST, count=1, length=len(payload), message_len=len(payload)), payload, 100)


class TestSipHash(unittest.TestCase):
    def test_vectors(self) -> None:
        for n in range(16):
            self.assertEqual(siphash(SECRET, SECRET[:n]), int.from_bytes(VECTORS[8 * n :][:8], "little"), n)

    def test_module_gives_the_same_tags(self) -> None:
        for payload in (True, False):
            for n in (0, 1, 7, 8, 9, MAX_PAYLOAD):
                tagged = Tagger(Key.parse(TEXT), payload).tag(request(bytes(n)))
                with mock.patch.object(tags, "siphash24", None):
                    header, _ = parse(tagged)
                    self.assertTrue(Tagger(Key.parse(TEXT), payload).accepts(header, tagged), n)


class TestKeys(unittest.TestCase):
    def test_text_is_read(self) -> None:
        self.assertEqual(Key.parse(f" {TEXT}\n"), Key("tenant", 7, SECRET))
        self.assertEqual(Key.parse(f"lnk1:tenant:004294967295:{SECRET_TEXT}").number, 4294967295)

    def test_what_is_no_key(self) -> None:
        for bad in (
            "", "lnk1", f"lnk2:tenant:7:{SECRET_TEXT}", f"lnk1::7:{SECRET_TEXT}", f"lnk1:tenant:0:{SECRET_TEXT}", f"lnk1:tenant:-1:{SECRET_TEXT}",
            f"lnk1:tenant:4294967296:{SECRET_TEXT}", f"lnk1:tenant:{'9' * 5000}:{SECRET_TEXT}", f"lnk1:tenant:٧:{SECRET_TEXT}", TEXT[:-2],
            TEXT[:-1] + "x", TEXT + "==", TEXT + "A", TEXT[:-1] + "+", "lnk1:tenant:7:!", TEXT + ":", TEXT + " x",
        ):  # fmt: skip
            for kind in (Client, AsyncClient):
                with self.subTest(bad=bad), self.assertRaisesRegex(ValueError, "not a key") as caught:
                    kind("127.0.0.1", key=bad)
                self.assertNotIn("AAEC", str(caught.exception))
        for no_text in (TEXT.encode(), 7, [TEXT]):
            with self.assertRaises(TypeError) as no_string:
                Client("127.0.0.1", key=no_text)  # type: ignore[arg-type]
            self.assertNotIn("AAEC", str(no_string.exception))

    def test_secret_is_not_shown(self) -> None:
        key, out = Key.parse(TEXT), io.StringIO()
        client = Client("127.0.0.1", key=TEXT)
        logger = logging.Logger("test")
        logger.addHandler(logging.StreamHandler(out))
        logger.info("%s %r %s %s %s", key, key, Options(key=key), vars(client), vars(Tagger(key, True)))
        self.assertEqual(out.getvalue().count("key 7 of namespace tenant"), 5, out.getvalue())
        for secret in ("AAEC", r"\x01\x02", "1, 2, 3"):
            self.assertNotIn(secret, out.getvalue())


class TestTagger(unittest.TestCase):
    def test_sequence_overflows(self) -> None:
        """After 2**32 packets, the client has another identity, and is never the anonymous one."""
        tagger = Tagger(Key.parse(TEXT), False)
        tagger._client, tagger._sent = (1 << 32) - 1, (1 << 32) - 2
        seen = set()
        for _ in range(4):
            packet = tagger.tag(request(b"payload"))
            header, payload = parse(packet)
            self.assertTrue(tagger.accepts(header, packet))
            self.assertEqual((header.flags, payload), (Flag.TAG | Flag.ODD_KEY, b"payload"))
            self.assertNotEqual(header.client, 0)
            seen.add((header.client, header.sequence))
        self.assertEqual(len(seen), 4)

    def test_sockets_have_identities_of_their_own(self) -> None:
        self.assertNotEqual(*(Tagger(Key.parse(TEXT), True)._client for _ in range(2)))

    def test_error_without_tag_is_told_at_the_deadline(self) -> None:
        session = Session(MAX_PAYLOAD, Options(key=Key.parse(TEXT)), Stats())
        call = session.start(Request(1, b"hello", deadline=1.0), 1, 0.0)
        [packet], _ = session.poll(0.0)
        header, _ = parse(packet)
        session.receive(encode(Header(type=Type.ERROR, code=Code.BAD_TAG, workload=1, request=header.request, count=1)), 0.1)
        session.poll(0.5)
        self.assertFalse(call.done)
        session.poll(1.0)
        self.assertIsInstance(call.error, BadTag)
        self.assertIsInstance(call.error and call.error.__cause__, DeadlineExceeded)
