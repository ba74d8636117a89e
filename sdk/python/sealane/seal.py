"""Sealed messages: spec/seal.md."""

from dataclasses import dataclass, field

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
MAX_EPOCHS_AHEAD = 1024
WINDOW = 1024


@dataclass
class Keys:
    """What a reader holds of one group."""

    group_id: bytes
    suite: int = 0x0005
    is_pair: bool = False
    #: Epoch secrets by epoch.
    secrets: dict[int, bytes] = field(default_factory=dict)
    #: Ed25519 public keys by slot.
    signers: dict[int, bytes] = field(default_factory=dict)
    #: The epoch of the reader's cursor.
    near: int = 0

    @classmethod
    def provisioned(cls, group_id: bytes, secret: bytes, **others) -> "Keys":
        """The keys of a group whose epoch 0 follows from a provisioned secret."""
        first = _hkdf(group_id, secret, b"Sealane 1.0 first epoch", 32)
        return cls(group_id, secrets={0: first}, **others)


@dataclass(frozen=True)
class SealHeader:
    """An SFrame header (RFC 9605, section 4.3)."""

    slot: int
    klass: int
    epoch_low: int
    counter: int

    def key_id(self) -> int:
        """The canonical key id: that of the full form."""
        return self.slot << 10 | self.klass << 8 | self.epoch_low

    def encode(self) -> bytes:
        """The header in the full form."""
        key, key_bytes = _write(self.key_id())
        counter, counter_bytes = _write(self.counter)
        return bytes([key << 4 | counter]) + key_bytes + counter_bytes


@dataclass(frozen=True)
class Opened:
    """An authentic message."""

    body: bytes
    klass: str
    slot: int
    epoch: int
    counter: int


def ratchet(group_id: bytes, secret: bytes, to: int) -> bytes:
    """The secret of epoch `to` from that of the epoch before it."""
    return _hkdf(group_id, secret, b"Sealane 1.0 next epoch " + to.to_bytes(8, "big"), 32)


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
    return SealHeader(slot, klass, nearest(low, bits, near) & 255, counter), at


def open_stored(keys: Keys, form: str, meta: bytes, sealed: bytes, clear: int) -> Opened:
    """Opens a message from a store, in the epoch that its key id means near to the cursor."""
    place = _Place(keys, form, keys.near, sealed, clear)
    return place.open(meta, nearest(place.header.epoch_low, 8, keys.near))


class Live:
    """Opens messages as they come from a link. What opens is accepted at once."""

    def __init__(self, keys: Keys, own: int | None = None):
        self.keys = keys
        self.own = own
        self.newest = max(keys.secrets)
        #: By slot: the epoch, and the counters that were accepted in it.
        self._windows: dict[int, tuple[int, set[int]]] = {}

    def open(self, form: str, meta: bytes, sealed: bytes, clear: int) -> Opened:
        """Opens a message, or refuses it with nothing moved."""
        place = _Place(self.keys, form, self.newest, sealed, clear)
        header = place.header
        if header.slot == self.own:
            raise Refused("SL-SEAL-11")
        likely = nearest(header.epoch_low, 8, self.newest)
        heard, _ = self._windows.get(header.slot, (None, None))
        last = self.newest + MAX_EPOCHS_AHEAD
        epochs = [likely]
        if form == "full" and heard != likely:
            epochs += range(likely + 256, last + 1, 256)
        refusal = Refused("SL-SEAL-08")
        for epoch in epochs:
            try:
                self._check(header, epoch)
                self._ratchet(epoch)
                opened = place.open(meta, epoch)
            except Refused as refused:
                if refusal.code == "SL-SEAL-08":
                    refusal = refused
                continue
            self._accept(opened)
            return opened
        raise refusal

    def _check(self, header: SealHeader, epoch: int) -> None:
        heard, accepted = self._windows.get(header.slot, (epoch, set()))
        if epoch < self.newest - 1 or heard > epoch:
            raise Refused("SL-SEAL-07")
        if heard < epoch:
            return
        if accepted and header.counter < max(accepted) + 1 - WINDOW:
            raise Refused("SL-SEAL-06")
        if header.counter in accepted:
            raise Refused("SL-SEAL-05")

    def _ratchet(self, to: int) -> None:
        secrets = self.keys.secrets
        if to > self.newest + MAX_EPOCHS_AHEAD:
            return
        for epoch in range(max(secrets) + 1, to + 1):
            secrets[epoch] = ratchet(self.keys.group_id, secrets[epoch - 1], epoch)

    def _accept(self, opened: Opened) -> None:
        self.newest = max(self.newest, opened.epoch)
        heard, accepted = self._windows.get(opened.slot, (opened.epoch, set()))
        accepted = accepted if heard == opened.epoch else set()
        self._windows[opened.slot] = (opened.epoch, accepted | {opened.counter})


class _Place:
    """Where the parts of sealed bytes stand."""

    def __init__(self, keys: Keys, form: str, near: int, sealed: bytes, clear: int):
        if clear > len(sealed):
            raise Refused("SL-SEAL-02")
        self.keys = keys
        self.header, length = parse_header(sealed[clear:], form, near)
        klass, slot = CLASSES[self.header.klass], self.header.slot
        if klass == ("C" if keys.is_pair else "P") or keys.is_pair and slot > 1:
            raise Refused("SL-SEAL-09")
        start, end = clear + length, len(sealed) - TAG
        least = start + (SIGNATURE if klass == "S" else 0)
        if end < least:
            raise Refused("SL-SEAL-02")
        if klass == "A" and end > start or klass != "A" and clear > 0:
            raise Refused("SL-SEAL-09")
        if max(clear, end - least) > MAX_BODY:
            raise Refused("SL-SEAL-16")
        self.klass, self.clear, self.text = klass, sealed[:clear], sealed[start:]

    def open(self, meta: bytes, epoch: int) -> Opened:
        """Applies the key of an epoch."""
        if len(meta) > MAX_META:
            raise Refused("SL-SEAL-16")
        if epoch not in self.keys.secrets:
            raise Refused("SL-SEAL-08")
        associated = self._associated(meta)
        try:
            plain = self._cipher(epoch).decrypt(self._nonce(epoch), self.text, associated)
        except InvalidTag:
            raise Refused("SL-SEAL-03") from None
        if self.klass == "S":
            plain = self._verified(plain, associated, epoch)
        body = self.clear if self.klass == "A" else plain
        return Opened(body, self.klass, self.header.slot, epoch, self.header.counter)

    def _associated(self, meta: bytes) -> bytes:
        parts = [self.header.encode(), self.keys.group_id, len(meta).to_bytes(2, "big"), meta]
        if self.klass == "A":
            parts += [len(self.clear).to_bytes(4, "big"), self.clear]
        return b"".join(parts)

    def _derive(self, epoch: int, label: bytes, length: int) -> bytes:
        info = self.header.key_id().to_bytes(8, "big") + self.keys.suite.to_bytes(2, "big")
        secret = self.keys.secrets[epoch]
        return _hkdf(b"", secret, b"SFrame 1.0 Secret " + label + b" " + info, length)

    def _cipher(self, epoch: int):
        return CIPHERS[self.keys.suite](self._derive(epoch, b"key", 32))

    def _nonce(self, epoch: int) -> bytes:
        salt = int.from_bytes(self._derive(epoch, b"salt", 12), "big")
        return (salt ^ self.header.counter).to_bytes(12, "big")

    def _verified(self, plain: bytes, associated: bytes, epoch: int) -> bytes:
        body, signature = plain[:-SIGNATURE], plain[-SIGNATURE:]
        signer = self.keys.signers.get(self.header.slot)
        if signer is None:
            raise Refused("SL-SEAL-10")
        lengths = epoch.to_bytes(8, "big") + len(associated).to_bytes(4, "big")
        signed = b"Sealane 1.0 signature " + lengths + associated + body
        try:
            Ed25519PublicKey.from_public_bytes(signer).verify(signature, signed)
        except InvalidSignature:
            raise Refused("SL-SEAL-04") from None
        return body


def _hkdf(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
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
