"""Writes small vaults as spec/vault.md says, good ones and bad ones, for the tests of the reader."""

import struct
from pathlib import Path

import lz4.block
import zstandard
from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

MAIN, VAULT_ID, CODE = bytes(range(32)), b"the vault's id!!", bytes(range(20))
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def derive(context: str, material: bytes) -> bytes:
    return blake3(material, derive_key_context="sealane vault v1 " + context).digest()


def key(purpose: str) -> bytes:
    return derive(purpose, MAIN + VAULT_ID)


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out, value = out + bytes([value & 0x7F | 0x80]), value >> 7
    return out + bytes([value])


def counted(data: bytes) -> bytes:
    return varint(len(data)) + data


def header(kind: int) -> bytes:
    return b"SLVT" + bytes([1, kind, 0, 0]) + VAULT_ID


def sign(data: bytes) -> bytes:
    signing = ed25519.Ed25519PrivateKey.from_private_bytes(key("signing"))
    return data + signing.sign(b"sealane vault v1 signature" + data)


def record(plain: bytes, associated: bytes) -> bytes:
    framed = struct.pack("<Q", len(associated)) + associated + plain
    nonce = blake3(framed, key=key("record-nonces")).digest()[:12]
    return nonce + AESGCMSIV(key("records")).encrypt(nonce, plain, associated)


def printed_code() -> str:
    check = int.from_bytes(derive("code check", CODE)[:3], "big") >> 4
    bits = int.from_bytes(CODE, "big") << 20 | check
    digits = "".join(DIGITS[bits >> shift & 31] for shift in range(175, -1, -5))
    return "-".join(digits[at : at + 4] for at in range(0, 36, 4))


def entry(path: bytes, kind: int, rest: bytes, mode: int = 0o644, extensions: bytes = b"") -> bytes:
    time = struct.pack("<q", 1_700_000_000_123_456_789)
    head = bytes([kind]) + varint(0) + counted(path) + varint(mode) + varint(0) * 2 + time
    return head + rest + extensions


def page(entries: list[bytes]) -> bytes:
    return b"\1" + varint(len(entries)) + b"".join(counted(one) for one in entries)


class Writer:
    """A vault in a folder, one pack and one snapshot at a time."""

    def __init__(self, root: Path):
        self.root, self.chunks, self.trailer, self.previous, self.count = root, b"", [], bytes(32), 0
        self.put("config", sign(header(1) + struct.pack("<III", 1 << 18, 1 << 20, 1 << 22) + b"\0"
                                + bytes(8) + self.verifying()))  # fmt: skip
        salt, cost = bytes(16), struct.pack("<III", 64, 1, 2)
        slow = Argon2id(salt=salt, length=32, iterations=1, lanes=2, memory_cost=64)
        self.slot(1, salt + cost, slow.derive(b"passphrase"))
        self.slot(2, b"", derive("recovery", CODE + VAULT_ID))

    @staticmethod
    def verifying() -> bytes:
        signing = ed25519.Ed25519PrivateKey.from_private_bytes(key("signing"))
        return signing.public_key().public_bytes_raw()

    def put(self, name: str, data: bytes) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def slot(self, kind: int, public: bytes, wrapping: bytes) -> None:
        ident = bytes([kind]) * 8
        before = header(2) + ident + bytes([kind]) + public
        nonce = bytes(12)
        sealed = AESGCMSIV(wrapping).encrypt(nonce, MAIN + b"label", before)
        self.put(f"keys/{ident.hex()}", before + nonce + sealed)

    def chunk(self, plain: bytes, kind: int = 0, how: int = 19, ident: bytes | None = None) -> bytes:
        """Appends a chunk to the pack; gives its id."""
        purpose = ("data-ids", "page-ids", "list-ids")[kind]
        ident = ident or blake3(plain, key=key(purpose)).digest()[:24]
        packed = plain
        if how == 1:
            packed = lz4.block.compress(plain, store_size=False)
        elif how > 16:
            packed = zstandard.ZstdCompressor(level=how - 16).compress(plain)
        descriptor = kind << 6 | how
        associated = b"SLVT" + struct.pack("<BBI", 1, descriptor, len(plain)) + VAULT_ID + ident
        sealed = AESGCMSIV(key("chunks")).encrypt(ident[:12], packed, associated)
        self.chunks += sealed
        row = ident + bytes([descriptor]) + varint(len(plain)) + varint(len(sealed))
        self.trailer.append(row)
        return ident

    def pack(self) -> str:
        """Closes the pack; gives its key."""
        head = header(3)
        offset = len(head) + len(self.chunks)
        plain = varint(len(self.trailer)) + b"".join(self.trailer)
        sealed = record(plain, head + struct.pack("<Q", offset))
        data = head + self.chunks + sealed + struct.pack("<I", len(sealed)) + b"SLVT"
        name = blake3(data).hexdigest()
        self.put(f"packs/{name[:2]}/{name}", data)
        self.chunks, self.trailer = b"", []
        return f"packs/{name[:2]}/{name}"

    def snapshot(self, pages: list[bytes], what: int = 0, removed: tuple = ()) -> None:
        """Appends a link to the chain."""
        self.count += 1
        gone = b"".join(struct.pack("<Q", number) + hashed for number, hashed in removed)
        head = header(5) + struct.pack("<Q", self.count) + self.previous + bytes(8)
        head += struct.pack("<I", len(removed)) + gone
        plain = bytes([1, what]) + bytes(8) + counted(b"host") + counted(b"") + varint(0) * 7
        plain += bytes([19]) + counted(b"") + varint(len(pages)) + b"".join(pages)
        data = sign(head + record(plain, head))
        self.put(f"snapshots/{self.count:010}", data)
        self.previous = blake3(data).digest()
