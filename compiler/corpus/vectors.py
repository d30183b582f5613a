#!/usr/bin/env python3
"""Writes the corpus's vectors.json: requests, and the replies that implementations which are not ours give to them.

Usage: vectors.py [NAME...], beside the programs. Needs openssl and bash, and from PyPI: cryptography lz4 networkx numpy protobuf
pyahocorasick rapidfuzz scapy scipy sympy xxhash.

Where results are floating-point numbers, the sums are done by numpy's or Python's IEEE 754 arithmetic in the order in which the C
program does them, so that all bits agree, and a library's own routine judges the result.
"""

import base64
import binascii
import bisect
import calendar
import datetime
import functools
import hashlib
import heapq
import hmac
import itertools
import json
import math
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import warnings
import zlib
from collections import Counter, deque

import ahocorasick
import lz4.block
import networkx
import numpy as np
import scipy.cluster.vq
import scipy.optimize
import scipy.signal
import sympy
import xxhash
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from google.protobuf.internal import encoder
from rapidfuzz.distance import Levenshtein
from scapy.utils import checksum as internet_checksum

MAKERS = {}


def vectors(make):
    """Registers a generator of (request, reply) under the name of its program."""
    MAKERS[make.__name__] = make
    return make


def rng(name):
    return random.Random(name)


def pack(fmt, items):
    return struct.pack(f"<{len(items)}{fmt}", *items)


def text(r, n, letters="abcdefghijklmnopqrstuvwxyz"):
    return "".join(r.choice(letters) for _ in range(n))


SIZES = [0, 1, 2, 3, 4, 15, 16, 17, 55, 56, 63, 64, 65, 119, 120, 127, 128, 500, 1000, 1399, 1400]


def blobs(name, limit=1400):
    r = rng(name)
    return [r.randbytes(n) for n in SIZES if n <= limit] + [bytes(100), b"\xff" * 100, b"The quick brown fox jumps over the lazy dog"]


# Sorting and searching


def int_lists(name, lo, hi, most):
    r = rng(name)
    yield from ([], [lo], [hi, lo], [7] * 20, list(range(50)), list(range(50, 0, -1)))
    for n in (10, 100, most):
        yield [r.randint(lo, hi) for _ in range(n)]
    yield [r.randint(-3, 3) % (hi + 1) for _ in range(most)]


def sorts(name, fmt, lo, hi, most):
    for a in int_lists(name, lo, hi, most):
        yield pack(fmt, a), pack(fmt, sorted(a))


@vectors
def insertion_sort():
    yield from sorts("insertion_sort", "i", -(2**31), 2**31 - 1, 350)


@vectors
def quick_sort():
    yield from sorts("quick_sort", "i", -(2**31), 2**31 - 1, 350)


@vectors
def heap_sort():
    yield from sorts("heap_sort", "Q", 0, 2**64 - 1, 175)


@vectors
def merge_sort():
    r = rng("merge_sort")
    for n, keys in ((0, 1), (1, 9), (2, 1), (33, 5), (100, 65536), (170, 10)):
        a = [(r.randrange(keys), i, r.getrandbits(32)) for i in range(n)]
        enc = lambda l: b"".join(struct.pack("<HHI", *x) for x in l)
        yield enc(a), enc(sorted(a, key=lambda x: x[0]))


@vectors
def binary_search():
    r = rng("binary_search")
    for n, keys in ((0, 0), (0, 3), (1, 5), (2, 9), (100, 100), (250, 99), (300, 49)):
        a = sorted(r.choice([r.randint(-50, 50), r.randint(-(2**31), 2**31 - 1)]) for _ in range(n))
        k = [r.choice(a + [r.randint(-60, 60), -(2**31), 2**31 - 1]) for _ in range(keys)]
        yield pack("i", [n] + a + k), pack("i", [bisect.bisect_left(a, x) for x in k])


@vectors
def library_sort():
    for a in int_lists("library_sort", -(2**31), 2**31 - 1, 100):
        yield pack("i", a), pack("i", sorted(a) + a)


@vectors
def priority_queue():
    r = rng("priority_queue")
    for n, out in ((0, 0), (1, 0), (5, 1), (50, 0.3), (350, 0.5), (350, 0.1)):
        ops, heap, want = [], [], []
        for _ in range(n):
            x = 0 if r.random() < out else r.choice([r.randint(-5, 5), r.randint(-(2**31), 2**31 - 1)])
            ops.append(x)
            if x:
                heapq.heappush(heap, x)
            elif heap:
                want.append(heapq.heappop(heap))
        yield pack("i", ops), pack("i", want)


# Sums and ciphers


@vectors
def crc32():
    for b in blobs("crc32"):
        yield b, pack("I", [zlib.crc32(b)])


@vectors
def adler32():
    for b in blobs("adler32"):
        yield b, pack("I", [zlib.adler32(b)])


@vectors
def checksum():
    for b in blobs("checksum"):
        yield b, struct.pack(">H", internet_checksum(b))


@vectors
def xxhash32():
    r = rng("xxhash32")
    for b in blobs("xxhash32", 1396):
        seed = r.choice([0, r.getrandbits(32)])
        yield pack("I", [seed]) + b, pack("I", [xxhash.xxh32_intdigest(b, seed)])


@vectors
def xxhash64():
    r = rng("xxhash64")
    for b in blobs("xxhash64", 1392):
        seed = r.choice([0, r.getrandbits(64)])
        yield pack("Q", [seed]) + b, pack("Q", [xxhash.xxh64_intdigest(b, seed)])


@vectors
def siphash():
    r = rng("siphash")
    for n in (0, 1, 7, 8, 9, 15, 16, 63, 100, 1384):
        key, b = r.randbytes(16), r.randbytes(n)
        out = subprocess.run(
            ["openssl", "mac", "-macopt", "hexkey:" + key.hex(), "-macopt", "size:8", "-binary", "-in", "/dev/stdin", "SIPHASH"],
            input=b, capture_output=True, check=True).stdout
        yield key + b, out


@vectors
def md5():
    for b in blobs("md5"):
        yield b, hashlib.md5(b).digest()


@vectors
def sha1():
    for b in blobs("sha1"):
        yield b, hashlib.sha1(b).digest()


@vectors
def sha256():
    for b in blobs("sha256"):
        yield b, hashlib.sha256(b).digest()


@vectors
def hmac_sha256():
    r = rng("hmac_sha256")
    for key, n in ((0, 0), (1, 5), (20, 8), (63, 64), (64, 55), (65, 1), (131, 152), (255, 1144)):
        k, b = r.randbytes(key), r.randbytes(n)
        yield bytes([key]) + k + b, hmac.digest(k, b, "sha256")


@vectors
def aes128():
    r = rng("aes128")
    for blocks in (0, 1, 2, 5, 20, 80):
        key, b = r.randbytes(16), r.randbytes(16 * blocks)
        e = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
        yield key + b, e.update(b) + e.finalize()
    key, b = bytes(range(16)), bytes.fromhex("00112233445566778899aabbccddeeff")
    yield key + b, bytes.fromhex("69c4e0d86a7b0430d8cdb78070b4c55a")  # FIPS 197, appendix C.1


@vectors
def chacha20():
    r = rng("chacha20")
    for n in (0, 1, 63, 64, 65, 128, 300, 1352):
        key, nonce, b = r.randbytes(32), r.randbytes(16), r.randbytes(n)
        yield key + nonce + b, Cipher(algorithms.ChaCha20(key, nonce), None).encryptor().update(b)


# Texts


@vectors
def base64_encode():
    for b in blobs("base64", 1000):
        yield b, base64.b64encode(b)


@vectors
def base64_decode():
    r = rng("base64_decode")
    good = [base64.b64encode(r.randbytes(n)) for n in (0, 1, 2, 3, 4, 50, 100, 1050)]
    bad = [b"=", b"AA=A", b"A===", b"AA=", b"AB!=", b"AAAA=AAA", b"AA==AAAA", b"AAA", b"Zm9v YmFy", b"Zm9\n", b"\0\0\0\0"]
    for b in good + bad:
        try:
            yield b, b"y" + base64.b64decode(b, validate=True)
        except binascii.Error:
            yield b, b"n"


@vectors
def hex():
    r = rng("hex")
    for n in (0, 1, 2, 100, 700):
        b = r.randbytes(n)
        yield b"e" + b, binascii.hexlify(b)
        yield b"d" + binascii.hexlify(b[:350]).upper(), b[:350]
    for b in (b"0", b"0g", b"12345", b"G0", b"@@", b"``", b"::"):
        yield b"d" + b, b""


@vectors
def utf8():
    r = rng("utf8")
    chars = ["a", "\x00", "\x7f", "\x80", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff", "\U00010000", "\U0010ffff", "λ", "€", "😀"]
    samples = [b"", b"plain"] + ["".join(r.choice(chars) for _ in range(n)).encode() for n in (14, 40, 80)]
    samples += [b"ok" + b for b in (b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xf0\x80\x80\x80",
                                    b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\xe2\x82", b"\xff", b"\xc3", b"\xc3(")]
    samples += [r.randbytes(30) for _ in range(5)] + ["é".encode() * 170]
    for b in samples:
        try:
            points = [ord(c) for c in b.decode("utf-8")]
        except UnicodeDecodeError as e:
            points = [ord(c) for c in b[: e.start].decode("utf-8")] + [-1]
        yield b, pack("i", points)


JSON_TEXTS = [
    "{}", "[]", "0", '""', "true", " [ 1 , 2.5 , -3e+7, 0.1E-2 ] ", '{"a": {"b": [null, true, false]}}', '[[[[[["deep"]]]]]]',
    '{"name": "lambda", "targets": ["nic", "process"], "limits": {"memory": 65536, "time": 1e-6}}', '["\\n\\t\\\\\\""]', "[1,[2,[3,[4]]],5]",
    json.dumps([{"id": i, "square": i * i, "half": i / 2, "name": "n" * (i % 7), "odd": i % 2 == 1} for i in range(18)]),
]


def json_tokens(s):
    """Lets json's own scanners find the tokens."""
    out, at, words = "", 0, {"true": "t", "false": "f", "null": "z"}
    while at < len(s):
        c = s[at]
        word = next((w for w in words if s.startswith(w, at)), None)
        number = json.scanner.NUMBER_RE.match(s, at)
        if c in " \t\r\n":
            at += 1
        elif c in "{}[]:,":
            out, at = out + c, at + 1
        elif c == '"':
            try:
                _, at = json.decoder.scanstring(s, at + 1)
            except json.JSONDecodeError:
                return out + "!"
            out += "s"
        elif word:
            out, at = out + words[word], at + len(word)
        elif number:
            out, at = out + "n", number.end()
        else:
            return out + "!"
    return out


@vectors
def json_():
    more = ['"\\u00e9"', '"\\ud83d\\ude00\\/"', '["\\x"]', '["open', '"\\u12g4"', "[tru]", "@", "nul", '"a\tb"', "[1,,]", "-", "", "01", '"a b~"', '"\x1f"', '"\x7f"']
    for s in JSON_TEXTS + more:
        yield s.encode(), json_tokens(s).encode()


@vectors
def json_parse():
    bad = ["", "[", "]", "[1,]", "{,}", '{"a"}', '{"a":}', "[1 2]", "tru", "-", "1.", '"open', "[1]]", '{1:2}', "nulll", '"\n"', "01", "1e", "[}"]
    for s in JSON_TEXTS + bad:
        tally = Counter()

        def depth(v):
            kind = {dict: "objects", list: "arrays", str: "strings", int: "numbers", float: "numbers"}
            tally[kind.get(type(v), "words")] += 1
            inner = v if isinstance(v, list) else v.values() if isinstance(v, dict) else ()
            if isinstance(v, dict):
                tally["strings"] += len(v)
            return 1 + max(map(depth, inner), default=0)

        try:
            d = depth(json.loads(s))
            yield s.encode(), pack("H", [d] + [tally[k] for k in ("objects", "arrays", "strings", "numbers", "words")])
        except json.JSONDecodeError:
            yield s.encode(), b"bad"


@vectors
def regex_match():
    r = rng("regex_match")
    cases = [("a", ""), ("", "x"), ("^$", ""), ("^a*$", "aaaa"), ("^a*$", "aaab"), ("a.c", "xxabcx"), ("x*", "aaa"), ("ab+c", "ac abc"),
             ("ab?c", "zac"), ("^ab", "cab"), ("b$", "abab"), (".*b.*b$", "aaabaaab"), ("a.*b.*c", "a" * 40 + "b" * 40 + "d"),
             ("a+a+a+$", "a" * 30), ("l.mb?da+", "some lambda"), ("^", "any"), ("$", "end"), ("a*a*a*b", "a" * 15)]
    for _ in range(12):
        pattern = "".join(r.choice("ab.") + r.choice(["", "", "*", "+", "?"]) for _ in range(r.randint(1, 5)))
        cases.append((pattern, text(r, r.randint(0, 25), "abc")))
    for pattern, s in cases:
        m = re.search(pattern, s)
        yield pattern.encode() + b"\0" + s.encode(), pack("i", [m.start() if m else -1])


@vectors
def levenshtein():
    r = rng("levenshtein")
    cases = [("", ""), ("", "abc"), ("kitten", "sitting"), ("same", "same"), ("a" * 99, "b" * 99), ("flaw", "lawn")]
    cases += [(text(r, r.randint(0, 99), "abcd"), text(r, r.randint(0, 99), "abcd")) for _ in range(6)]
    for a, b in cases:
        yield a.encode() + b"\0" + b.encode(), pack("I", [Levenshtein.distance(a, b)])


@vectors
def kmp():
    r = rng("kmp")
    cases = [("a", ""), ("aa", "aaaaaa"), ("abab", "abababab"), ("abc", "ab"), ("aabaaab", "aabaaabaaabaaab"), ("a" * 255, "a" * 300)]
    cases += [(text(r, r.randint(1, 6), "ab"), text(r, 400, "ab")) for _ in range(4)]
    for p, s in cases:
        found = [m.start() for m in re.finditer(f"(?={re.escape(p)})", s)]
        yield bytes([len(p)]) + p.encode() + s.encode(), pack("H", found)


@vectors
def boyer_moore():
    r = rng("boyer_moore")
    cases = [(b"a", b""), (b"abc", b"ab"), (b"end", b"the end"), (b"\xff\xfe", b"\xff\xff\xfe"), (b"x" * 255, b"x" * 254), (b"x" * 255, b"x" * 1000)]
    for n in (3, 10, 40):
        s = r.randbytes(1200)
        cases += [(s[700 : 700 + n], s), (r.randbytes(n), s)]
    for p, s in cases:
        yield bytes([len(p)]) + p + s, pack("i", [s.find(p)])


@vectors
def aho_corasick():
    r = rng("aho_corasick")
    cases = [(["a"], ""), (["he", "she", "his", "hers"], "ushers she his"), (["a", "aa", "aaa"], "aaaaaa"), (["abc", "bcd", "c"], "ABC abcd bcd!"), ([], "none")]
    for _ in range(4):
        cases.append((list(dict.fromkeys(text(r, r.randint(1, 5), "abc") for _ in range(14))), text(r, 900, "abc ")))
    for words, s in cases:
        a, counts = ahocorasick.Automaton(), Counter()
        for w in words:
            a.add_word(w, w)
        if words:
            a.make_automaton()
            counts = Counter(w for _, w in a.iter(s))
        yield "".join(w + "\0" for w in words).encode() + b"\0" + s.encode(), pack("H", [counts[w] for w in words])


@vectors
def text_numbers():
    r = rng("text_numbers")
    cases = [[], [("a", 1)], [("a", 1), ("b", -2), ("a", 3)], [("zero", 0), ("big", 2**40), ("big", -(2**41))]]
    cases += [[(r.choice(["in", "out", "drop", "pass"]), r.randint(-9999, 9999)) for _ in range(n)] for n in (10, 60)]
    for rows in cases:
        total = {}
        for name, v in rows:
            total[name] = total.get(name, 0) + v
        s = "\n".join(f"{name}={v}" for name, v in rows) + "\nnot a pair\n=nameless\n"
        yield s.encode(), "".join(f"{k}={v}\n" for k, v in total.items()).encode()


# Sketches and structures


def words_of(r, n):
    return list(dict.fromkeys(text(r, r.randint(1, 9)) for _ in range(n)))


@vectors
def bloom():
    r = rng("bloom")
    for n in (0, 1, 5, 20, 60):
        known, others = words_of(r, n), words_of(r, 30)
        ask = r.sample(known, min(len(known), 10)) + others
        yield "".join(f"+{w}\n" for w in known).encode() + "".join(f"{w}\n" for w in ask).encode(), "".join(
            "y" if w in set(known) else "n" for w in ask).encode()


@vectors
def count_min():
    r = rng("count_min")
    for n, kinds in ((0, 1), (1, 1), (5, 5), (100, 3), (300, 6), (700, 4)):
        keys = r.sample(range(65536), kinds)
        a = [r.choice(keys) for _ in range(n)]
        yield pack("H", a), pack("H", [Counter(a)[x] for x in a])


@vectors
def trie():
    r = rng("trie")
    cases = [(["a"], ["a", "b", "aa"]), (["to", "tea", "ted", "ten", "inn"], ["t", "te", "ten", "i", "x", "tens"])]
    cases += [([text(r, r.randint(1, 4), "abc") for _ in range(n)], [text(r, r.randint(1, 3), "abcd") for _ in range(20)]) for n in (3, 20, 40)]
    for words, prefixes in cases:
        yield ("".join(w + "\n" for w in words) + "\n" + "".join(p + "\n" for p in prefixes)).encode(), pack(
            "H", [sum(w.startswith(p) for w in words) for p in prefixes])


@vectors
def binary_tree():
    r = rng("binary_tree")
    for a in ([], [1], [3, 1, 2, 3], list(range(16)), [r.randint(0, 60) for _ in range(60)], [r.getrandbits(16) for _ in range(120)]):
        yield pack("H", a), pack("H", [x for kv in sorted(Counter(a).items()) for x in kv])


@vectors
def hash_table():
    r = rng("hash_table")
    for n, keys in ((0, 1), (3, 2), (60, 10), (175, 40), (175, 65536)):
        table, ops, want = {}, b"", []
        pool = [r.getrandbits(16) for _ in range(keys)]
        for _ in range(n):
            what, key, value = r.choice("ssgd"), r.choice(pool), r.getrandbits(32)
            ops += struct.pack("<cxHI", what.encode(), key, value)
            if what == "s":
                table[key] = value
            elif what == "g":
                want.append(table.get(key, 0))
            else:
                table.pop(key, None)
        yield ops, pack("I", want)


@vectors
def linked_list():
    for n, k in ((1, 1), (2, 2), (7, 3), (41, 3), (100, 1), (300, 7), (50, 20)):
        circle, out = deque(range(1, n + 1)), []
        while circle:
            circle.rotate(1 - k)
            out.append(circle.popleft())
        yield pack("H", [n, k]), pack("H", out)


@vectors
def lru_cache():
    r = rng("lru_cache")
    for n, keys in ((0, 1), (1, 1), (20, 8), (200, 9), (500, 12), (700, 30)):
        cached, out = functools.lru_cache(maxsize=8)(lambda key: key), ""
        a = [int(r.triangular(0, keys, 0)) for _ in range(n)]
        for key in a:
            before = cached.cache_info().hits
            cached(key)
            out += "h" if cached.cache_info().hits > before else "m"
        yield pack("H", a), out.encode()


@vectors
def histogram():
    for b in blobs("histogram"):
        h, _ = np.histogram(np.frombuffer(b, np.uint8), bins=16, range=(0, 256))
        yield b, h.astype("<u2").tobytes() + np.cumsum(h).astype("<u2").tobytes()


# Graphs and combinatorics


@vectors
def union_find():
    r = rng("union_find")
    for n, m in ((0, 0), (1, 0), (2, 1), (10, 6), (200, 100), (200, 340)):
        edges = [(r.randrange(n), r.randrange(n)) for _ in range(m)]
        g = networkx.Graph(edges)
        g.add_nodes_from(range(n))
        least = {v: min(c) for c in networkx.connected_components(g) for v in c}
        yield pack("H", [n] + [v for e in edges for v in e]), pack("H", [least[i] for i in range(n)])


@vectors
def dijkstra():
    r = rng("dijkstra")
    for n, m in ((1, 0), (2, 1), (5, 8), (20, 60), (40, 60), (40, 230)):
        g = networkx.MultiDiGraph()
        g.add_nodes_from(range(n))
        edges = [(r.randrange(n), r.randrange(n), r.choice([r.randrange(10), r.randrange(65536)])) for _ in range(m)]
        if m:
            edges[-1] = (0, n - 1, 0)  # of the last, too, the result depends
        g.add_weighted_edges_from(edges)
        d = networkx.single_source_dijkstra_path_length(g, 0)
        yield pack("H", [n] + [x for e in edges for x in e]), pack("I", [d.get(i, 2**32 - 1) for i in range(n)])


@vectors
def knapsack():
    r = rng("knapsack")
    for capacity, n in ((0, 3), (10, 1), (50, 8), (200, 20), (500, 30), (500, 60)):
        w = [r.randint(1, 90) for _ in range(n)]
        v = [r.randint(0, 1000) for _ in range(n)]
        best = scipy.optimize.milp(-np.array(v), constraints=scipy.optimize.LinearConstraint([w], ub=capacity), integrality=np.ones(n),
                                   bounds=scipy.optimize.Bounds(0, 1), options={"mip_rel_gap": 0})
        yield pack("H", [capacity] + [x for p in zip(w, v) for x in p]), pack("I", [round(-best.fun)])


@vectors
def permutations():
    r = rng("permutations")
    for letters, steps in (("a", 5), ("ab", 1), ("ab", 2), ("abcd", 7), ("abcdefg", 255), ("acegikm", 0), ("bdfhj", 119), ("xyz", 100)):
        every = ["".join(p) for p in itertools.permutations(letters)]
        at = r.randrange(len(every))
        yield every[at].encode() + bytes([steps]), every[(at + steps) % len(every)].encode()


@vectors
def queens():
    for n, count in enumerate([1, 1, 0, 0, 2, 10, 4, 40]):  # OEIS A000170
        yield bytes([n]), pack("I", [count])


@vectors
def life():
    r = rng("life")
    glider = np.zeros((32, 32), np.uint8)
    glider[0:3, 0:3] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]
    random_worlds = [np.array([[r.random() < 0.3 for _ in range(32)] for _ in range(32)], np.uint8) for _ in range(2)]
    for generations, w in ((0, glider), (1, glider), (20, glider), (3, np.ones((32, 32), np.uint8)), (1, random_worlds[0]), (12, random_worlds[1])):
        rows = lambda w: np.packbits(w, axis=1, bitorder="little").tobytes()
        request = bytes([generations]) + rows(w)
        for _ in range(generations):
            n = scipy.signal.convolve2d(w, [[1, 1, 1], [1, 0, 1], [1, 1, 1]], mode="same", boundary="wrap")
            w = ((n == 3) | ((n == 2) & (w == 1))).astype(np.uint8)
        yield request, rows(w)


# Numbers


@vectors
def big_product():
    r = rng("big_product")
    cases = [(0, 0), (1, 0), (999999999, 999999999), (10**9, 10**18), (10**300, 10**300), (int("9" * 349), int("9" * 349))]
    cases += [(r.getrandbits(bits), r.getrandbits(bits)) for bits in (10, 64, 500, 1000)]
    for a, b in cases:
        yield f"{a} {b}".encode(), str(a * b).encode()


@vectors
def gcd():
    r = rng("gcd")

    def bezout(a, b):
        g = math.gcd(a, b)
        if b == 0 or a % b == 0:
            return (a, 1, 0) if b == 0 else (b, 0, 1)
        m = b // g
        x = pow(a // g, -1, m)
        x -= m if 2 * x > m else 0  # Euclid's is the one of least magnitude
        return g, x, (g - a * x) // b

    pairs = [(0, 0), (7, 0), (0, 7), (12, 12), (240, 46), (46, 240), (2**62, 3), (2**63 - 1, 2**31 - 1), (144, 89)]
    pairs += [(r.getrandbits(62), r.getrandbits(bits)) for bits in (10, 31, 62) for _ in range(8)]
    pairs = [p for p in pairs if p[1] == 0 or p[1] // math.gcd(*p) != 2]
    for some in (pairs[:1], pairs[1:5], pairs[5:9], pairs[9:20], pairs):
        yield pack("q", [x for p in some for x in p]), pack("q", [x for p in some for x in bezout(*p)])


@vectors
def fibonacci():
    for n in (0, 1, 2, 3, 10, 16):
        yield bytes([n]), pack("Q", [int(sympy.fibonacci(n))])


@vectors
def ackermann():
    for m, n in ((0, 0), (0, 9), (1, 0), (1, 9), (2, 0), (2, 3), (2, 9)):
        yield bytes([m, n]), pack("I", [(n + 1, n + 2, 2 * n + 3)[m]])  # the closed forms


@vectors
def sieve():
    for a, b in ((0, 0), (0, 1), (0, 2), (2, 2), (3, 100), (1000, 1100), (0, 3999), (100, 50), (3990, 4000)):
        yield pack("I", [a, b]), pack("H", list(sympy.primerange(a, b + 1)))


@vectors
def dates():
    r = rng("dates")
    samples = ["1970-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2000-02-29T12:00:00Z", "1900-02-29T00:00:00Z", "0001-01-01T00:00:00Z",
               "9999-12-31T23:59:59Z", "2026-13-01T00:00:00Z", "2026-04-31T00:00:00Z", "2024-02-29T24:00:00Z", "2023-02-29T00:00:00Z",
               "2026-01-01 00:00:00Z", "2026-01-01T00:00:0", "", "0000-01-01T00:00:00Z", "2026-01-01T00:60:00Z", "2O26-01-01T00:00:00Z"]
    samples += [(datetime.datetime(1, 1, 1) + datetime.timedelta(seconds=r.randrange(9998 * 365 * 86400))).strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
                for _ in range(8)]
    for s in samples:
        try:
            d = datetime.datetime.strptime(s, "%Y-%m-%dT%H:%M:%SZ")
            yield s.encode(), pack("q", [calendar.timegm(d.timetuple()), d.weekday()])
        except ValueError:
            yield s.encode(), b""


@vectors
def varint():
    r = rng("varint")
    number = lambda key, wire: encoder._VarintBytes(key << 3 | wire)
    yield b"", b""
    for n in (1, 5, 20):
        message, want = b"", []
        for _ in range(n):
            key, wire = r.choice([1, 15, 16, r.randrange(1, 2**29)]), r.choice([0, 1, 2, 5])
            value = r.getrandbits(r.choice([1, 7, 8, 14, 32, 63, 64]))
            if wire == 2:
                value = r.randrange(12)
            bits = {1: 64, 5: 32}.get(wire, 64)
            value &= 2**bits - 1
            message += number(key, wire) + {0: lambda: encoder._VarintBytes(value), 1: lambda: struct.pack("<Q", value),
                                            2: lambda: encoder._VarintBytes(value) + r.randbytes(value), 5: lambda: struct.pack("<I", value)}[wire]()
            want += [key, value]
        yield message, pack("Q", want)
    for bad in (b"\x08", b"\x08\x80", b"\x0a\x05abc", b"\x0d123", b"\x0f\x01", b"\x00\x01", b"\x09\x00"):
        yield bad, b""


def bash(expression):
    """bash's arithmetic is C's, on 64 bits."""
    out = subprocess.run(["bash", "-c", f"echo $(({expression}))"], capture_output=True, text=True)
    return None if out.returncode or out.stderr else int(out.stdout)


@vectors
def calculator():
    r = rng("calculator")

    def expression(depth):
        kind = r.randrange(4) if depth else 0
        if kind == 0:
            return str(r.choice([r.randrange(10), r.randrange(100000)]))
        if kind == 1:
            return f"({expression(depth - 1)})"
        if kind == 2:
            return f"- {expression(0)}"
        return f"{expression(depth - 1)} {r.choice('+-*/%')} {expression(depth - 1)}"

    cases = ["1", "1 + 2 * 3", "(1 + 2) * 3", "7 / 2 * 2", "-7 / 2", "-7 % 3", "2 - - 3", "((((((1))))))", "1 / 0", "5 % (2 - 2)", "1 +", "(1", ")", "1 2", "* 3",
             "123456789 * 987654321 * 2"]
    cases += [expression(5)[:300] for _ in range(10)]
    for s in cases:
        v = bash(s)
        yield s.encode(), b"" if v is None else pack("q", [v])


@vectors
def dispatch():
    r = rng("dispatch")

    def tree(depth):
        """Gives the same expression in reverse Polish and for bash; m is the lesser of two."""
        if not depth or r.random() < 0.2:
            n = r.randrange(1000)
            return str(n), str(n)
        (a, x), (b, y) = tree(depth - 1), tree(depth - 1)
        op = r.choice("+-*m/%")
        if op in "/%" and bash(y) == 0:
            return f"{a} {b} {op}", "0"
        return f"{a} {b} {op}", f"(({x}) < ({y}) ? ({x}) : ({y}))" if op == "m" else f"(({x}) {op} ({y}))"

    for rpn, infix in [tree(d) for d in (0, 1, 1, 2, 3, 4, 4)]:
        yield rpn.encode(), pack("q", [bash(infix)])
    yield b"1 2 3", pack("q", [1, 2, 3])
    yield b"7 0 /  7 0 %", pack("q", [0, 0])
    for bad in (b"+", b"1 +", b"1 x", b"1 2 ^", b"", b" ".join([b"1"] * 33)):
        yield bad, b""


@vectors
def bytecode():
    END, PUSH, ADD, SUB, MUL, DIV, DUP, SWAP, DROP, PRINT, JUMP, ZERO, STORE, LOAD, LESS, REST = range(16)
    wrap = lambda v: (v + 2**31) % 2**32 - 2**31

    def countdown(n, body, at=0):
        """Code for the place at, which runs body, without jumps, with register 0 from n down to 1."""
        loop = at + 4
        back = body + [LOAD, 0, PUSH, 1, SUB, STORE, 0, JUMP, loop]
        return [PUSH, n, STORE, 0, LOAD, 0, ZERO, loop + 4 + len(back)] + back

    yield b"", b""
    for n in (1, 5, 12):
        product = countdown(n, [LOAD, 1, LOAD, 0, MUL, STORE, 1], at=4)
        yield bytes([PUSH, 1, STORE, 1] + product + [LOAD, 1, PRINT]), pack("i", [wrap(math.factorial(n))])
    yield bytes(countdown(30, [LOAD, 0, DUP, MUL, PRINT])), pack("i", [i * i for i in range(30, 0, -1)])
    yield bytes([PUSH, 0xF9, PUSH, 2, DIV, PRINT, PUSH, 0xF9, PUSH, 2, REST, PRINT]), pack("i", [bash("-7 / 2"), bash("-7 % 2")])
    yield bytes([PUSH, 3, PUSH, 4, SWAP, SUB, PRINT, PUSH, 1, PUSH, 2, LESS, PRINT]), pack("i", [1, 1])
    yield bytes([PUSH, 7, PRINT, PUSH, 1, PUSH, 0, DIV, PRINT]), pack("i", [7])
    yield bytes([PUSH, 7, PRINT, ADD, PRINT]), pack("i", [7])
    yield bytes([PUSH, 7, PRINT, 99]), pack("i", [7])
    yield bytes([PUSH, 1, PRINT, JUMP, 0]), pack("i", [1] * 64)
    yield bytes([PUSH, 1, JUMP, 0]), b""
    yield bytes([JUMP, 0]), b""


# Floating point


def matrices(name, kind, most):
    r = np.random.default_rng(list(name.encode()))
    for k in (0, 1, 2, 3, 5, most):
        a, b = (r.normal(size=(k, k)) * 10.0 ** r.integers(-6, 7, (k, k)) for _ in range(2))
        yield a.astype(kind), b.astype(kind)
    yield np.full((2, 2), np.finfo(kind).max, kind), np.full((2, 2), 2, kind)
    yield np.full((2, 2), np.finfo(kind).smallest_normal, kind), np.full((2, 2), 0.3, kind)


def matrix(name, kind, most):
    for a, b in matrices(name, kind, most):
        k = len(a)
        c = np.zeros((k, k), kind)
        for i in range(k):
            c += a[:, i : i + 1] * b[i : i + 1, :]  # the order of the C program's innermost loop
        assert np.allclose(c, a @ b, rtol=1e-2, equal_nan=True)
        yield a.tobytes() + b.tobytes(), c.tobytes()


@vectors
def matrix_float():
    yield from matrix("matrix_float", np.float32, 12)


@vectors
def matrix_double():
    yield from matrix("matrix_double", np.float64, 8)


def fft(name, kind, most):
    r = np.random.default_rng(list(name.encode()))
    root = np.array([[math.cos(-2 * math.pi * k / most), math.sin(-2 * math.pi * k / most)] for k in range(most // 2)]).astype(kind)
    signals = [r.normal(size=(n, 2)).astype(kind) for n in (1, 2, 4, 8, 32, most)] + [np.eye(16, 2, dtype=kind), np.ones((16, 2), kind)]
    for x in signals:
        n = len(x)
        bits = n.bit_length() - 1
        y = x[[int(format(i, f"0{bits}b")[::-1], 2) if bits else 0 for i in range(n)]]
        half = 1
        while half < n:
            re_, im = root[:: most // 2 // half, 0], root[:: most // 2 // half, 1]
            z = y.reshape(-1, 2 * half, 2)
            a, b = z[:, :half], z[:, half:]
            turned = np.stack([b[..., 0] * re_ - b[..., 1] * im, b[..., 0] * im + b[..., 1] * re_], -1)
            y = np.concatenate([a + turned, a - turned], 1).reshape(n, 2)
            half *= 2
        want = np.fft.fft(x[:, 0].astype(float) + 1j * x[:, 1].astype(float))
        assert y.dtype == kind and np.allclose(y[:, 0] + 1j * y[:, 1], want, rtol=1e-4, atol=1e-4)
        yield x.tobytes(), y.tobytes()


@vectors
def fft_float():
    yield from fft("fft_float", np.float32, 128)


@vectors
def fft_double():
    yield from fft("fft_double", np.float64, 64)


@vectors
def k_means():
    r = np.random.default_rng(5)
    for n, k, rounds in ((1, 1, 0), (1, 1, 1), (2, 2, 3), (10, 3, 5), (40, 4, 10), (80, 8, 20)):
        points = r.normal(size=(n, 2)) + r.integers(0, 4, (n, 1)) * 5
        means = points[:k].copy()
        for _ in range(rounds):
            d = (points[:, None, 0] - means[:, 0]) ** 2 + (points[:, None, 1] - means[:, 1]) ** 2
            nearest = d.argmin(1)
            sums = np.zeros_like(means)
            for p, m in zip(points, nearest):
                sums[m] += p
            means = sums / np.bincount(nearest, minlength=k)[:, None]
        if rounds:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                judged, _ = scipy.cluster.vq.kmeans2(points, points[:k].copy(), iter=rounds, minit="matrix")
            assert np.allclose(judged, means)
        yield pack("I", [k, rounds]) + points.tobytes(), means.tobytes()


@vectors
def mandelbrot():
    for re_, im, step in ((-2.0, -1.25, 0.16), (-0.75, 0.1, 0.001), (10.0, 10.0, 1.0), (-0.1, -0.1, 0.01), (-1.7685, -0.002, 0.0003), (math.nan, 0, 1)):
        out = []
        for row, column in itertools.product(range(16), repeat=2):
            c, z, n = complex(re_ + column * step, im + row * step), 0j, 0
            while n < 50 and z.real * z.real + z.imag * z.imag <= 4:
                z, n = z * z + c, n + 1
            out.append(n)
        yield pack("d", [re_, im, step]), bytes(out)


@vectors
def mandelbrot_fixed():
    one = 1 << 28
    for re_, im, step in ((-2 * one, -int(1.25 * one), int(0.16 * one)), (-one // 2, 0, 12345), (-one, one // 3, 1 << 20), (0, 0, 1), (-int(1.7685 * one), -536870, 80530)):
        out = []
        for row, column in itertools.product(range(16), repeat=2):
            cr, ci, x, y, n = re_ + column * step, im + row * step, 0, 0, 0
            while n < 40 and (x * x >> 28) + (y * y >> 28) <= 4 * one:
                x, y, n = (x * x >> 28) - (y * y >> 28) + cr, (2 * x * y >> 28) + ci, n + 1
            out.append(n)
        yield pack("i", [re_, im, step]), bytes(out)


@vectors
def statistics_():
    r = np.random.default_rng(7)
    samples = [[1.5], [1, 2, 3, 4], [-0.0, 0.0], [1e-45, 3e-39], [3e38, -3e38], r.normal(size=100), r.normal(size=350) * 1e6, r.uniform(size=350)]
    for s in samples:
        a = np.asarray(s, np.float32)
        mean = squares = 0.0
        least, greatest = math.inf, -math.inf
        for i, x in enumerate(map(float, a)):
            d = x - mean
            mean += d / (i + 1)
            squares += d * (x - mean)
            least, greatest = x if x < least else least, x if x > greatest else greatest
        variance = squares / len(a)
        assert math.isclose(variance, statistics.pvariance(map(float, a)), rel_tol=1e-6, abs_tol=1e-90)
        yield a.tobytes(), pack("d", [mean, variance, math.sqrt(variance), least, greatest])


# Data


@vectors
def lz4_():
    r = rng("lz4")
    samples = [b"", b"a", b"abcd" * 300, bytes(1399), r.randbytes(300), (b"lambda " * 50 + r.randbytes(20)) * 3, text(r, 1300, "ab").encode(), b"x" * 1399]
    packed = [lz4.block.compress(s, store_size=False) for s in samples if s] + [b"\0"]
    bad = [packed[1][:-3], packed[5][:41], b"\x10a\x02\x00" + b"\x50abcde", b"\xf0\xff", lz4.block.compress(bytes(3000), store_size=False)]
    for b in packed + bad:
        try:
            yield b, b"y" + lz4.block.decompress(b, uncompressed_size=1399)
        except lz4.block.LZ4BlockError:
            yield b, b"n"


@vectors
def run_length():
    r = rng("run_length")
    for b in (b"", b"a", b"aaab", bytes(255), bytes(256), bytes(700), r.randbytes(350), b"".join(bytes([r.randrange(3)]) * r.randrange(1, 30) for _ in range(40))[:700]):
        pairs = b""
        for value, run in itertools.groupby(b):
            n = len(list(run))
            while n:
                pairs += bytes([min(n, 255), value])
                n -= min(n, 255)
        yield b"e" + b, pairs
        yield b"d" + pairs, b


@vectors
def greyscale():
    r = np.random.default_rng(11)
    for n in (0, 1, 2, 256, 257, 350):
        pixels = r.integers(0, 256, (n, 4), np.uint8)
        grey = (pixels[:, :3].astype(np.uint32) @ np.array([77, 150, 29], np.uint32) + 128) // 256
        yield pixels.tobytes(), grey.astype(np.uint8).tobytes()
    for corner in (0, 255):
        yield bytes([corner] * 40), bytes([corner] * 10)


def main():
    here = pathlib.Path(__file__).parent
    for name, make in MAKERS.items():
        name = name.rstrip("_")
        if len(sys.argv) > 1 and name not in sys.argv[1:]:
            continue
        rows = [json.dumps({"in": request.hex(), "out": reply.hex()}) for request, reply in make()]
        assert len(rows) >= 5, name
        assert all(len(json.loads(row)[end]) <= 2 * 1400 for row in rows for end in ("in", "out")), name
        (here / name / "vectors.json").write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
