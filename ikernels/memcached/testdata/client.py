# SPDX-License-Identifier: Apache-2.0
"""Changes values by pymemcache, which speaks the text protocol. After each change it says what is stored now, and waits for a line.

python3 client.py HOST PORT
"""

import json
import sys

from pymemcache.client.base import Client

client = Client((sys.argv[1], int(sys.argv[2])), default_noreply=False)


def stored(key, value):
    print(json.dumps({"key": key, "value": value}), flush=True)
    sys.stdin.readline()
    got = client.get(key)
    assert got == (None if value is None else value.encode()), (got, value)


def without_reply():
    """Waits until the server has done what it does not answer."""
    client.version()


assert client.set("python", "first")
stored("python", "first")
assert not client.add("python", "refused")
stored("python", "first")
assert client.replace("python", "second")
stored("python", "second")
assert client.append("python", " end")
stored("python", "second end")
assert client.prepend("python", "begin ")
stored("python", "begin second end")
value, version = client.gets("python")
assert client.cas("python", "swapped", version)
stored("python", "swapped")
assert client.cas("python", "too late", version) is False
stored("python", "swapped")
client.set("python", "quiet", noreply=True)
without_reply()
stored("python", "quiet")
assert client.touch("python", 1000)
stored("python", "quiet")
client.append("python", "er", noreply=True)
without_reply()
stored("python", "quieter")
client.delete("python", noreply=True)
without_reply()
stored("python", None)
assert client.set_many({"python": "one", "snake": "two"}) == []
stored("python", "one")
stored("snake", "two")
assert client.get_many(["python", "snake", "none"]) == {"python": b"one", "snake": b"two"}
assert client.set("number", "41")
assert client.incr("number", 1) == 42
stored("number", "42")
assert client.decr("number", 12) == 30
stored("number", "30")
assert client.touch("number", -1)
stored("number", None)
assert client.set("snake", "gone", expire=-1)
stored("snake", None)
assert client.delete("python")
stored("python", None)
assert client.set("python", "again", expire=1000)
stored("python", "again")
assert client.flush_all()
stored("python", None)
client.close()
