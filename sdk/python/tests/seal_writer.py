"""Writes sealed messages and frames as the pages say it, with no code of the reader."""

import hashlib
import hmac
import struct
from dataclasses import dataclass, replace

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

CIPHERS = {5: AESGCM, 61441: ChaCha20Poly1305}
LINK, STREAM, CONVERSATION = 0, 1, 2


def expand(key: bytes, info: bytes, length: int) -> bytes:
    """HKDF-Expand (RFC 5869) for lengths of one block."""
    return hmac.digest(key, info + b"\x01", hashlib.sha512)[:length]


def extract(salt: bytes, secret: bytes) -> bytes:
    """HKDF-Extract."""
    return hmac.digest(salt, secret, hashlib.sha512)


def binding(kind: int, name: bytes = b"") -> bytes:
    """The place that a message is made for."""
    material = struct.pack(">B", kind) + name
    return blake3(material, derive_key_context="Sealane 1.0 binding").digest(length=16)


def header(key_id: int, counter: int) -> bytes:
    """An SFrame header in its shortest form."""
    config, tail = 0, b""
    for value in (key_id, counter):
        digits = b"" if value < 8 else value.to_bytes(8, "big").lstrip(b"\0")
        config = config << 4 | (8 + len(digits) - 1 if digits else value)
        tail += digits
    return struct.pack(">B", config) + tail


@dataclass(frozen=True)
class Message:
    """What is sealed, and how."""

    klass: str = "C"
    body: bytes = b"unit 4 is 200 m north of the bridge"
    slot: int = 7
    epoch: int = 0
    counter: int = 3
    context: bytes = b"contextA"
    bound: bytes = binding(LINK)
    meta: bytes = b"type 7, codec 3"
    group: bytes = b"\x07" * 32
    secret: bytes = b"\x5e" * 32
    suite: int = 5
    signing_seed: bytes = b"\x51" * 32

    def but(self, **others) -> "Message":
        """The same message with other fields."""
        return replace(self, **others)

    @property
    def number(self) -> int:
        """The class in key ids and flags."""
        return {"A": 0, "C": 1, "S": 2, "P": 3}[self.klass]

    def key_id(self, epoch_bits: int) -> int:
        """The key id of a form."""
        low = self.epoch % (1 << epoch_bits)
        return self.slot << (epoch_bits + 2) | self.number << epoch_bits | low

    def header(self, form: str = "full") -> bytes:
        """The SFrame header."""
        return header(self.key_id({"full": 8, "compact": 4}[form]), self.counter)

    def associated(self) -> bytes:
        """The associated data."""
        parts = self.header() + self.group + self.bound
        parts += struct.pack(">H", len(self.meta)) + self.meta
        return parts + (struct.pack(">I", len(self.body)) + self.body) * (self.klass == "A")

    def signature(self) -> bytes:
        """The signature of class S."""
        text = b"Sealane 1.0 signature " + struct.pack(">Q", self.epoch) + self.context
        text += struct.pack(">I", len(self.associated())) + self.associated() + self.body
        return Ed25519PrivateKey.from_private_bytes(self.signing_seed).sign(text)

    def ciphertext(self) -> bytes:
        """The ciphertext with its tag; in class A the tag alone."""
        label = b"Sealane 1.0 sender context " + self.context
        base = expand(extract(b"", self.secret), label, 32)
        names = struct.pack(">QH", self.key_id(8), self.suite)
        key = expand(extract(b"", base), b"SFrame 1.0 Secret key " + names, 32)
        salt = expand(extract(b"", base), b"SFrame 1.0 Secret salt " + names, 12)
        counter = struct.pack(">4xQ", self.counter)
        nonce = bytes(a ^ b for a, b in zip(salt, counter, strict=True))
        text = b"" if self.klass == "A" else self.body
        text += self.signature() if self.klass == "S" else b""
        return CIPHERS[self.suite](key).encrypt(nonce, text, self.associated())

    def sealed(self, form: str = "full") -> bytes:
        """The sealed bytes: in class A the body in clear stands first."""
        clear = self.body if self.klass == "A" else b""
        return clear + self.header(form) + self.ciphertext()


def announcement(start: int, orders: int, **others) -> Message:
    """A sender's announcement of itself."""
    return Message("S", struct.pack(">BQQ", 1, start, orders), **others)


@dataclass(frozen=True)
class Frame:
    """A frame that carries a message."""

    message: Message
    next_hop: bytes = b"\xff" * 8
    previous_hop: bytes = b"previous"
    hop_limit: int = 5
    kind: int = 0
    priority: int = 1
    codec: int = 3
    data_type: int = 4
    tag: bytes = b"team"
    source: bytes = b"source-7"
    destination: bytes = b"\xff" * 8
    orders: int = 0

    def but(self, **others) -> "Frame":
        """The same frame with other fields."""
        return replace(self, **others)

    @property
    def flags(self) -> int:
        """Class and priority."""
        return self.message.number | self.priority << 2

    def header(self) -> bytes:
        """The 64 bytes."""
        fields = (self.next_hop, self.previous_hop, self.hop_limit, 2, self.kind, self.flags)
        fields += (self.codec, self.data_type, self.tag, self.source, self.destination)
        fields += (len(self.message.body), self.message.counter, self.message.context, self.orders)
        return struct.pack("<8s8sBBBBBH4s8s8sIQ8sB", *fields)

    def bound(self) -> Message:
        """The message under this frame's header."""
        return self.message.but(meta=self.header()[17:])

    def full(self) -> bytes:
        """The full form."""
        return self.header() + self.bound().sealed()

    def compact(self, dictionary_byte: int = 0) -> bytes:
        """The compact form."""
        long = self.data_type > 255
        first = 0x80 | long << 6 | self.kind << 4 | self.hop_limit
        front = struct.pack("<BB", first, dictionary_byte) + self.message.context[-1:]
        front += struct.pack("<H" if long else "<B", self.data_type)
        front += self.tag if self.message.klass == "P" else b""
        message = self.bound()
        clear = message.body if message.klass == "A" else b""
        return front + message.header("compact") + clear + message.ciphertext()

    def entry(self) -> bytes:
        """Its entry in the dictionary."""
        tag = bytes(4) if self.message.klass == "P" else self.tag
        return tag + self.destination + struct.pack("<BB", self.codec, self.flags)
