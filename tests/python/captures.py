"""Judges captures of sealed links. It shares no code with what made them: what a frame is it knows
from spec/frame.md and spec/seal.md alone.

    captures.py once OUTER INNER OWN_ADDRESS PORT OWN_INNER_ADDRESS INNER_PORT
    captures.py search FILE --secret FILE ... --word TEXT ...
    captures.py self-test

`once` reads what the wires and the interface of one end carried. No two frames that the end has
sent may have the same epoch, slot, context and counter, and no numbered datagram (to INNER_PORT) may
have come out of its interface twice. `search` looks for each piece of 8 bytes of each secret.
"""

import argparse
import json
import os
import struct
import tempfile
from collections import Counter, namedtuple

ETHERNET, RAW_IP = 1, 101
UDP = 17
PIECE_BYTES = 8

Unit = namedtuple("Unit", "source source_port target target_port payload frame")
Frame = namedtuple("Frame", "epoch slot context counter signed length")


def packets(path):
    """The packets of a capture: link type and bytes. Its last one may be cut off."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 24:
        return
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    (link_type,) = struct.unpack_from(order + "I", data, 20)
    at = 24
    while at + 16 <= len(data):
        _, _, kept, _ = struct.unpack_from(order + "IIII", data, at)
        if at + 16 + kept > len(data):
            return
        yield link_type, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def datagrams(path):
    """The UDP datagrams of a capture: addresses, ports, payload."""
    for link_type, packet in packets(path):
        if link_type == ETHERNET:
            if packet[12:14] != b"\x08\x00":
                continue
            packet = packet[14:]
        if len(packet) < 28 or packet[0] >> 4 != 4 or packet[9] != UDP:
            continue
        if struct.unpack_from(">H", packet, 6)[0] & 0x3FFF:
            raise ValueError(f"{path}: a fragment of IP, which no link sends")
        header = (packet[0] & 15) * 4
        addresses = [".".join(map(str, packet[at : at + 4])) for at in (12, 16)]
        ports = struct.unpack_from(">HH", packet, header)
        yield addresses, ports, packet[header + 8 :]


def sframe(data):
    """Key id, counter and length of an SFrame header (RFC 9605 section 4.3)."""
    config, at, values = data[0], 1, []
    for nibble in (config >> 4, config & 15):
        value = nibble & 7
        if nibble & 8:
            size = value + 1
            value = int.from_bytes(data[at : at + size], "big")
            at += size
        values.append(value)
    return *values, at


def frame(data):
    """The frame that data begins with; none where it begins with something else."""
    # Tags begin with neither; fragments, batches and notes do.
    if len(data) < 66 or data[0] in (0, 1):
        return None
    if data[17] != 2:
        raise ValueError(f"a frame of version {data[17]}")
    body, sequence = struct.unpack_from("<IQ", data, 43)
    kind = data[19] & 3
    if kind == 0:
        raise ValueError("a frame of class A, which no link here sends")
    key_id, counter, length = sframe(data[64:])
    if counter != sequence or (key_id >> 8) & 3 != kind:
        raise ValueError("the two headers of a frame disagree")
    signature = 64 if kind == 2 else 0
    whole = 64 + length + body + signature + 16
    return Frame(key_id & 255, key_id >> 10, data[55:63], counter, kind == 2, whole)


def units(path, port):
    """The units of the UDP links at a port; the kernel may have joined several in one packet."""
    for (source, target), (source_port, target_port), payload in datagrams(path):
        if port not in (source_port, target_port):
            continue
        while payload:
            one = frame(payload)
            length = min(one.length if one else len(payload), len(payload))
            yield Unit(source, source_port, target, target_port, payload[:length], one)
            payload = payload[length:]


def once(outer, inner, own, port, inner_own, inner_port):
    sent, came = Counter(), Counter()
    for unit in units(outer, port):
        if unit.frame is None:
            continue
        one = unit.frame
        number = (one.epoch, one.slot, one.context, one.counter)
        if unit.source == own:
            sent[number] += 1
        elif unit.target == own:
            came[number] += 1
    taken = Counter()
    for (source, target), (_, target_port), payload in datagrams(inner):
        if (target, target_port) == (inner_own, inner_port) and len(payload) >= 8:
            taken[source, payload[:8]] += 1
    return {
        "v": 1,
        "sealed": len(sent),
        "sealedTwice": sum(count - 1 for count in sent.values()),
        "came": len(came),
        "repeated": sum(count - 1 for count in came.values()),
        "taken": len(taken),
        "takenTwice": sum(count - 1 for count in taken.values()),
        "contexts": len({number[2] for number in sent}),
    }


def is_telling(piece):
    """Whether it is no mere padding: a counter, zeros, or one letter again and again."""
    steps = all(abs(a - b) <= 1 for a, b in zip(piece, piece[1:]))
    return len(set(piece)) >= PIECE_BYTES // 2 and not steps


def pieces(secret):
    """Every telling piece of a secret, as it is and in hexadecimal."""
    for at in range(len(secret) - PIECE_BYTES + 1):
        piece = secret[at : at + PIECE_BYTES]
        if is_telling(piece):
            yield piece
            # What begins like a piece in hexadecimal is taken for it.
            yield piece.hex().encode()[:PIECE_BYTES]


def search(path, secrets):
    """The names of the secrets of which a piece is in a capture."""
    names = {}
    for name, secret in secrets.items():
        for piece in pieces(secret):
            names.setdefault(piece, set()).add(name)
    found, searched = set(), 0
    wanted = names.keys()
    for _, packet in packets(path):
        searched += len(packet)
        windows = {packet[at : at + PIECE_BYTES] for at in range(len(packet) - PIECE_BYTES + 1)}
        for piece in wanted & windows:
            found |= names[piece]
    return {"v": 1, "bytes": searched, "pieces": len(names), "found": sorted(found)}


def sample(counter, context):
    """A frame of slot 1 in epoch 3."""
    header = bytearray(64)
    header[0], header[17], header[19] = 0xB1, 2, 1
    struct.pack_into("<IQ", header, 43, 5, counter)
    header[55:63] = bytes([context] * 8)
    return bytes(header) + bytes([0x98, 0x05, 0x03, counter]) + b"x" * 21


def wrap(source, target, port, payload, link_type):
    """A capture's record of one datagram over IPv4."""
    udp = struct.pack(">HHHH", port, port, 8 + len(payload), 0) + payload
    ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, UDP, 0, source, target)
    packet = (bytes(12) + b"\x08\x00" if link_type == ETHERNET else b"") + ip + udp
    return struct.pack("<IIII", 0, 0, len(packet), len(packet)) + packet


def self_test():
    assert sframe(bytes([0x12])) == (1, 2, 1)
    assert sframe(bytes([0x98, 1, 2, 7])) == (0x0102, 7, 4)
    secret = b"over the hills and far away"
    assert len(list(pieces(secret))) == 2 * (len(secret) - 7)
    assert not list(pieces(b"\0" * 20)) and not list(pieces(bytes(range(20))))
    whole = sample(9, 1)
    one = frame(whole + b"the next")
    assert (one.epoch, one.slot, one.counter, one.length) == (3, 1, 9, len(whole)), one
    assert frame(b"\1\0\1" + b"x" * 99) is None

    own, other, inner_own = (bytes(four) for four in ((10, 78, 1, 1), (10, 78, 1, 2), (10, 9, 0, 2)))
    with tempfile.TemporaryDirectory() as folder:
        outer, inner = (os.path.join(folder, name) for name in ("outer", "inner"))

        def found(sent, came, taken):
            files = (
                (outer, ETHERNET, [(own, other, 9190, sent), (other, own, 9190, came)]),
                (inner, RAW_IP, [(other, inner_own, 7777, number) for number in taken]),
            )
            for path, link_type, datagrams in files:
                with open(path, "wb") as file:
                    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, link_type))
                    for words in datagrams:
                        file.write(wrap(*words, link_type))
            names = ("sealedTwice", "repeated", "takenTwice", "contexts")
            what = once(outer, inner, "10.78.1.1", 9190, "10.9.0.2", 7777)
            return tuple(what[name] for name in names)

        two = sample(1, 1) + sample(2, 1)
        numbers = [bytes([number] * 8) for number in (1, 2)]
        assert found(two, two, numbers) == (0, 0, 0, 1)
        assert found(two + sample(1, 2), two, numbers) == (0, 0, 0, 2)
        assert found(two + sample(2, 1), two, numbers) == (1, 0, 0, 1)
        assert found(two, two + two, numbers * 2) == (0, 2, 2, 1)
        with open(inner, "ab") as file:
            file.write(wrap(own, other, 80, b"I went " + secret, RAW_IP))
        assert search(inner, {"hills": secret, "none": b"somewhere else"})["found"] == ["hills"]
    print("captures are read")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("once")
    for name in ("outer", "inner", "own"):
        verb.add_argument(name)
    verb.add_argument("port", type=int)
    verb.add_argument("inner_own")
    verb.add_argument("inner_port", type=int)
    verb = verbs.add_parser("search")
    verb.add_argument("file")
    verb.add_argument("--secret", action="append", default=[])
    verb.add_argument("--word", action="append", default=[])
    verbs.add_parser("self-test")
    given = parser.parse_args()
    if given.verb == "once":
        words = (given.own, given.port, given.inner_own, given.inner_port)
        found = once(given.outer, given.inner, *words)
    elif given.verb == "search":
        secrets = {word: word.encode() for word in given.word}
        for path in given.secret:
            with open(path, "rb") as file:
                secrets[path] = file.read()
        found = search(given.file, secrets)
    else:
        return self_test()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
