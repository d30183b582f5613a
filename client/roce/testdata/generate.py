# SPDX-License-Identifier: Apache-2.0
"""Writes scapy.json: packets as scapy (scapy.contrib.roce, 2.6 or later) makes them, headers from IP on and ICRC included.

    python3 -m venv /tmp/scapy && /tmp/scapy/bin/pip install scapy && /tmp/scapy/bin/python generate.py > scapy.json
"""
import json
import struct

from scapy.contrib.roce import AETH, BTH
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.packet import Raw

OPS = {0x00: 256, 0x01: 256, 0x02: 3, 0x03: 256, 0x04: 0, 0x05: 17, 0x06: 1024, 0x07: 1024, 0x08: 1, 0x09: 2, 0x0A: 4, 0x0B: 1023}
RETH = {0x06, 0x0A, 0x0B}
IMM = {0x03, 0x05, 0x09, 0x0B}


def route(psn, ipv6):
    if ipv6:
        return IPv6(src="2001:db8::1", dst="2001:db8::2", hlim=17, tc=3, fl=0x12345)
    return IP(src="192.0.2.1", dst="192.0.2.2", id=psn & 0xFFFF, flags="DF", ttl=17, tos=3)


def case(op, service, n, psn, ipv6):
    payload = bytes((7 * i + psn) & 255 for i in range(n))
    pad = -n % 4
    rest = b""
    if op in RETH:
        rest += struct.pack("!QII", 0x123456789ABCDEF0, 0xC0FFEE01, 4 * n + 1)
    if op in IMM:
        rest += struct.pack("!I", 0xDEADBEEF)
    bth = BTH(opcode=service | op, padcount=pad, dqpn=0xABCDEF, ackreq=psn & 1, psn=psn)
    packet = route(psn, ipv6) / UDP(sport=50000 + op, dport=4791) / bth / Raw(rest + payload + bytes(pad))
    return {"op": op, "service": service, "psn": psn, "payload": payload.hex(), "packet": bytes(packet).hex()}


def ack(syndrome, psn, msn):
    bth = BTH(opcode=0x11, dqpn=0x11, psn=psn)
    packet = route(psn, False) / UDP(sport=49152, dport=4791) / bth / AETH(syndrome=syndrome, msn=msn)
    return {"op": 0x11, "service": 0, "psn": psn, "syndrome": syndrome, "msn": msn, "payload": "", "packet": bytes(packet).hex()}


cases = [case(op, service, n, 0xFFFFF0 + op, service == 0x20) for service in (0, 0x20) for op, n in OPS.items()]
cases += [ack(s, 0x800000 + s, 0xFFFFFF) for s in (0x1F, 0x20, 0x60, 0x61, 0x62, 0x63)]
print(json.dumps(cases, indent=1))
