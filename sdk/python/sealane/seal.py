"""Sealed messages: spec/seal.md."""

from dataclasses import dataclass, field

from blake3 import blake3
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .refused import Refused

CIPHERS = {0x0005: AESGCM, 0xF001: ChaCha20Poly1305}
EPOCH_BITS = {"full": 8, "compact": 4}
CLASSES = "ACSP"
TAG = 16
SIGNATURE = 64
MAX_BODY = 16 << 20
MAX_META = 256
MAX_COUNTER = (1 << 40) - 1


def _binding(kind: int, name: bytes) -> bytes:
    context = "Sealane 1.0 binding"
    return blake3(bytes([kind]) + name, derive_key_context=context).digest()[:16]


#: Where a message belongs that two neighbours tell each other and nobody keeps.
BOUND_TO_LINK = _binding(0, b"")


def bound_to_stream(topic: str) -> bytes:
    """Where a message of a stream belongs."""
    return _binding(1, topic.encode())


def bound_to_conversation(group_id: bytes) -> bytes:
    """Where a message of a conversation belongs."""
    return _binding(2, group_id)


@dataclass(frozen=True)
class Term:
    """A time in which a member has a slot."""

    slot: int
    #: Its first epoch, and the first one no more or None.
    first: int
    end: int | None
    #: The member's Ed25519 public key.
    key: bytes

    def holds(self, slot: int, epoch: int) -> bool:
        """Whether the member has this slot in this epoch."""
        began, ended = self.first <= epoch, self.end is not None and self.end <= epoch
        return self.slot == slot and began and not ended


@dataclass
class Keys:
    """What a reader holds of one group."""

    group_id: bytes
    suite: int = 0x0005
    is_pair: bool = False
    #: Epoch secrets by epoch.
    secrets: dict[int, bytes] = field(default_factory=dict)
    #: The terms of the members. None are told, or all: who has no term is no member then.
    terms: list[Term] | None = None
    #: The epoch of the reader's cursor.
    near: int = 0

    def verifying_key(self, slot: int, epoch: int) -> bytes | None:
        """The key of the member who has a slot in an epoch."""
        found = (term.key for term in self.terms or [] if term.holds(slot, epoch))
        return next(found, None)


@dataclass(frozen=True)
class Sealed:
    """Sealed bytes, and what their reader is told with them."""

    data: bytes
    #: The sender context, which the frame carries or the link knows.
    context: bytes
    #: Where the reader found the message: one of the `bound_to` functions gives it.
    binding: bytes
    #: The authenticated part of the frame's full header.
    meta: bytes = b""
    form: str = "full"
    #: How many bytes of `data` stand before the SFrame header: the body of class A.
    clear: int = 0


@dataclass(frozen=True)
class SealHeader:
    """An SFrame header (RFC 9605, section 4.3), with its epoch completed."""

    slot: int
    klass: int
    epoch: int
    counter: int

    def key_id(self) -> int:
        """The canonical key id: that of the full form."""
        return self.slot << 10 | self.klass << 8 | self.epoch & 255

    def encode(self) -> bytes:
        """The header in the full form."""
        key, key_bytes = _write(self.key_id())
        counter, counter_bytes = _write(self.counter)
        return bytes([key << 4 | counter]) + key_bytes + counter_bytes


@dataclass(frozen=True)
class Opened:
    """An authentic message. Group, epoch, slot, context and counter name it."""

    body: bytes
    klass: str
    slot: int
    epoch: int
    counter: int
    context: bytes


def ratchet(group_id: bytes, secret: bytes, to: int) -> bytes:
    """The secret of epoch `to` from that of the epoch before it."""
    return _hkdf(group_id, secret, b"Sealane 1.0 next epoch " + to.to_bytes(8, "big"))


def nearest(low: int, bits: int, near: int) -> int:
    """The epoch with these low bits that lies nearest."""
    span = 1 << bits
    least = max(0, near - (span // 2 - 1))
    return least + (low - least) % span


def parse_header(data: bytes, form: str, near: int) -> tuple[SealHeader, int]:
    """The header at the start of `data`, and its length."""
    if not data:
        raise Refused("SL-SEAL-02")
    key, at = _read(data[0] >> 4, data, 1)
    counter, at = _read(data[0] & 15, data, at)
    bits = EPOCH_BITS[form]
    slot, klass, low = key >> (bits + 2), key >> bits & 3, key & ((1 << bits) - 1)
    if slot > 1023 or counter > MAX_COUNTER:
        raise Refused("SL-SEAL-01")
    return SealHeader(slot, klass, nearest(low, bits, near), counter), at


def open_stored(keys: Keys, sealed: Sealed) -> Opened:
    """Opens a message from a store, in the epoch that its key id means near to the cursor."""
    layout = Layout(keys, sealed, keys.near)
    layout.admit()
    return layout.open()


class Layout:
    """Where the parts of sealed bytes stand. To make one checks header, class and lengths."""

    def __init__(self, keys: Keys, sealed: Sealed, near: int):
        data, clear = sealed.data, sealed.clear
        if clear > len(data):
            raise Refused("SL-SEAL-02")
        self.keys = keys
        self.sealed = sealed
        self.header, length = parse_header(data[clear:], sealed.form, near)
        klass, slot = CLASSES[self.header.klass], self.header.slot
        if klass == ("C" if keys.is_pair else "P") or keys.is_pair and slot > 1:
            raise Refused("SL-SEAL-09")
        start, end = clear + length, len(data) - TAG
        least = start + (SIGNATURE if klass == "S" else 0)
        if end < least:
            raise Refused("SL-SEAL-02")
        if klass == "A" and end > start or klass != "A" and clear > 0:
            raise Refused("SL-SEAL-09")
        if max(clear, end - least) > MAX_BODY:
            raise Refused("SL-SEAL-16")
        self.klass, self.clear, self.text = klass, data[:clear], data[start:]

    def admit(self) -> None:
        """Checks that the epoch's secret is held, and that somebody has the slot in it."""
        slot, epoch = self.header.slot, self.header.epoch
        if epoch not in self.keys.secrets:
            raise Refused("SL-SEAL-08")
        if self.keys.terms is None and self.klass != "S":
            return
        if self.keys.verifying_key(slot, epoch) is None:
            raise Refused("SL-SEAL-10")

    def open(self) -> Opened:
        """Applies the key, and in class S verifies the signature."""
        if len(self.sealed.meta) > MAX_META:
            raise Refused("SL-SEAL-16")
        header, associated = self.header, self._associated()
        base = _base(self.keys.secrets[header.epoch], self.sealed.context)
        number = header.key_id().to_bytes(8, "big") + self.keys.suite.to_bytes(2, "big")
        key = _hkdf(b"", base, b"SFrame 1.0 Secret key " + number)
        salt = _hkdf(b"", base, b"SFrame 1.0 Secret salt " + number, 12)
        nonce = (int.from_bytes(salt, "big") ^ header.counter).to_bytes(12, "big")
        try:
            plain = CIPHERS[self.keys.suite](key).decrypt(nonce, self.text, associated)
        except InvalidTag:
            raise Refused("SL-SEAL-03") from None
        body = self.clear if self.klass == "A" else plain
        if self.klass == "S":
            body = self._verified(plain, associated)
        named = (header.slot, header.epoch, header.counter, self.sealed.context)
        return Opened(body, self.klass, *named)

    def _associated(self) -> bytes:
        meta = self.sealed.meta
        parts = [self.header.encode(), self.keys.group_id, self.sealed.binding]
        parts += [len(meta).to_bytes(2, "big"), meta]
        if self.klass == "A":
            parts += [len(self.clear).to_bytes(4, "big"), self.clear]
        return b"".join(parts)

    def _verified(self, plain: bytes, associated: bytes) -> bytes:
        body, signature = plain[:-SIGNATURE], plain[-SIGNATURE:]
        parts = [b"Sealane 1.0 signature ", self.header.epoch.to_bytes(8, "big")]
        parts += [self.sealed.context, len(associated).to_bytes(4, "big"), associated, body]
        key = self.keys.verifying_key(self.header.slot, self.header.epoch)
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, b"".join(parts))
        except InvalidSignature:
            raise Refused("SL-SEAL-04") from None
        return body


def _base(secret: bytes, context: bytes) -> bytes:
    """SFrame's base key: each start of a sender has its own."""
    return _hkdf(b"", secret, b"Sealane 1.0 sender context " + context)


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int = 32) -> bytes:
    return HKDF(SHA512(), length, salt, info).derive(secret)


def _read(bits: int, data: bytes, at: int) -> tuple[int, int]:
    """The value that four bits of the config byte announce, and where it ends."""
    if bits < 8:
        return bits, at
    end = at + bits - 7
    if end > len(data):
        raise Refused("SL-SEAL-02")
    value = int.from_bytes(data[at:end], "big")
    if value < 8 or data[at] == 0:
        raise Refused("SL-SEAL-01")
    return value, end


def _write(value: int) -> tuple[int, bytes]:
    """Four bits of the config byte, and the bytes behind it."""
    if value < 8:
        return value, b""
    length = (value.bit_length() + 7) // 8
    return 7 + length, value.to_bytes(length, "big")
