"""Reads and restores vaults: written from spec/vault.md alone. `python -m sealane` runs it."""

from __future__ import annotations

import hashlib
import os
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Iterator, NamedTuple

import lz4.block
import zstandard
from blake3 import blake3
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from .refused import Refused
from .vault_chain import Snapshot, read_chain
from .vault_owners import MAX_ROTATIONS, Owners

MAGIC, HEADER, TAG, NONCE, ID = b"SLVT", 24, 16, 12, 24
CONFIG, SLOT, PACK, SNAPSHOT = 1, 2, 3, 5
DATA, PAGE, LIST = 0, 1, 2
KINDS = {DATA: "data-ids", PAGE: "page-ids", LIST: "list-ids"}
MAX_CHUNK, MAX_TRAILER, MAX_PACK = 4 << 20, 20 << 20, 64 << 20
MAX_CONFIG, MAX_SLOT, MAX_SNAPSHOT = 256, 4096, 32 << 20
MAX_PATH, MAX_PAGE_ENTRIES, MAX_PIECES = 4096, 1024, 1024
MAX_FILE_LISTS, MAX_PAGE_PIECES = 1 << 16, 1 << 17
MAX_ATTRIBUTE_NAME, MAX_ATTRIBUTE, MAX_ATTRIBUTES = 255, 64 << 10, 1 << 20
MAX_PAGE_ATTRIBUTES = 1 << 16
FOLDER, FILE, LINK, CHARACTER, BLOCK, FIFO = range(6)
MAX_KDF_KIB, MAX_KDF_PASSES, MAX_KDF_LANES = 1 << 20, 16, 16
DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

MISSING, TOO_LARGE, TRUNCATED, MALFORMED, VERSION, NOT_AUTHENTIC, SIGNATURE = (
    f"SL-VAULT-{number:02}" for number in range(3, 10)
)


class Reader:
    """Bytes from front to back."""

    def __init__(self, data: bytes, at: int = 0):
        self.data, self.at = data, at

    def take(self, count: int) -> bytes:
        """The next bytes, all of them or a refusal."""
        end = self.at + count
        if end > len(self.data):
            raise Refused(TRUNCATED)
        taken, self.at = self.data[self.at : end], end
        return taken

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def varint(self, most: int = (1 << 64) - 1) -> int:
        """Unsigned LEB128, in its shortest form."""
        value = 0
        for shift in range(0, 70, 7):
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > most or (byte == 0 and shift):
                    raise Refused(MALFORMED)
                return value
        raise Refused(MALFORMED)

    def bytes(self, most: int) -> bytes:
        return self.take(self.varint(most))

    def rest(self) -> int:
        return len(self.data) - self.at

    def end(self) -> None:
        if self.rest():
            raise Refused(MALFORMED)


class Folder:
    """The objects of a vault as files."""

    def __init__(self, root: os.PathLike | str):
        self.root = Path(root)

    def get(self, key: str, most: int) -> bytes:
        """A whole object of at most so many bytes."""
        data = self.range(key, 0, most + 1)
        if len(data) > most:
            raise Refused(TOO_LARGE)
        return data

    def range(self, key: str, offset: int, length: int) -> bytes:
        """At most so many bytes from an offset; counted from the end, if negative."""
        try:
            with open(self.root / key, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(offset + size, 0) if offset < 0 else offset)
                return file.read(length)
        except FileNotFoundError:
            raise Refused(MISSING) from None

    def names(self, prefix: str) -> list[str]:
        """The keys below a prefix, sorted."""
        found = (self.root / prefix).rglob("*")
        return sorted(str(path.relative_to(self.root)) for path in found if path.is_file())


def check_header(data: bytes, kind: int, vault_id: bytes | None) -> Reader:
    """A reader behind the header of an object."""
    reader = Reader(data)
    if reader.take(4) != MAGIC:
        raise Refused(MALFORMED)
    if reader.number(1) != 1:
        raise Refused(VERSION)
    if reader.number(1) != kind or reader.number(1) > 1:
        raise Refused(MALFORMED)
    if reader.number(1) > (0 if kind in (CONFIG, SLOT) else MAX_ROTATIONS):
        raise Refused(MALFORMED)
    if reader.take(16) != (vault_id or data[8:24]):
        raise Refused(NOT_AUTHENTIC)
    if data[6] == 1:
        wrapped = reader.number(2)
        reader.take(wrapped)
    return reader


def derive(context: str, material: bytes) -> bytes:
    """A key for one use."""
    return blake3(material, derive_key_context="sealane vault v1 " + context).digest()


def recovery_code(text: str) -> bytes:
    """The 20 bytes of a printed recovery code, which checks itself."""
    text = text.upper().replace("-", "").replace(" ", "").translate(str.maketrans("OIL", "011"))
    if len(text) != 36 or any(digit not in DIGITS for digit in text):
        raise Refused(MALFORMED)
    bits = 0
    for digit in text:
        bits = bits << 5 | DIGITS.index(digit)
    code, check = (bits >> 20).to_bytes(20, "big"), bits & 0xFFFFF
    if int.from_bytes(derive("code check", code)[:3], "big") >> 4 != check:
        raise Refused(NOT_AUTHENTIC)
    return code


class Keys:
    """What the main key and the vault's id derive."""

    def __init__(self, secret: bytes, vault_id: bytes):
        self.vault_id = vault_id
        self.key = lambda purpose: derive(purpose, secret + vault_id)
        self._sessions: dict[bytes, Keys] = {}
        self.ids = {kind: self.key(purpose) for kind, purpose in KINDS.items()}
        self.chunks = AESGCMSIV(self.key("chunks"))
        self.records = AESGCMSIV(self.key("records"))

    def verifying(self) -> bytes:
        key = ed25519.Ed25519PrivateKey.from_private_bytes(self.key("signing"))
        return key.public_key().public_bytes_raw()

    def of(self, header: bytes) -> "Keys":
        """The keys of an object: these, or those of the session that its header carries."""
        if header[6] == 0:
            return self
        wrapped = header[26 : 26 + int.from_bytes(header[24:26], "little")]
        if wrapped not in self._sessions:
            purpose = b"sealane vault v1 session" + self.vault_id
            secret = opened_letter(self.key("identity"), purpose, wrapped)
            self._sessions[wrapped] = Keys(secret, self.vault_id)
        return self._sessions[wrapped]

    def record(self, data: bytes, associated: bytes) -> bytes:
        return opened(self.records, data[:NONCE], data[NONCE:], associated)


def opened_letter(identity: bytes, purpose: bytes, letter: bytes) -> bytes:
    """What somebody encrypted to an identity: spec/group.md."""
    # Only writers' objects need what older releases of the library lack.
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
    from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, MLKEM768X25519PrivateKey, Suite

    seed = blake3(identity, derive_key_context="Sealane 1.0 identity X-Wing").digest()
    halves = hashlib.shake_256(seed).digest(96)
    lattice = mlkem.MLKEM768PrivateKey.from_seed_bytes(halves[:64])
    curve = x25519.X25519PrivateKey.from_private_bytes(halves[64:])
    suite = Suite(KEM.MLKEM768_X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)
    if letter[:5] != b"SLLT\1":
        raise Refused(MALFORMED)
    try:
        key = MLKEM768X25519PrivateKey(lattice, curve)
        return suite.decrypt(letter[5:], key, b"Sealane 1.0 letter " + purpose)
    except (InvalidTag, ValueError):
        raise Refused(NOT_AUTHENTIC) from None


def opened(cipher: AESGCMSIV, nonce: bytes, sealed: bytes, associated: bytes) -> bytes:
    """Opens, or refuses."""
    if len(nonce) < NONCE or len(sealed) < TAG:
        raise Refused(TRUNCATED)
    try:
        return cipher.decrypt(nonce, sealed, associated)
    except InvalidTag:
        raise Refused(NOT_AUTHENTIC) from None


def check_signature(data: bytes, key: bytes) -> bytes:
    """What stands before the signature that ends an object."""
    before, signature = data[:-64], data[-64:]
    try:
        verifying = ed25519.Ed25519PublicKey.from_public_bytes(key)
        verifying.verify(signature, b"sealane vault v1 signature" + before)
    except (InvalidSignature, ValueError):
        raise Refused(SIGNATURE) from None
    return before


def open_slot(data: bytes, vault_id: bytes, passphrase: bytes | None, code: bytes | None):
    """The main key of a slot; none if the slot wants another secret."""
    reader = check_header(data, SLOT, vault_id)
    reader.take(8)
    kind = reader.number(1)
    if kind == 1 and passphrase is not None:
        salt = reader.take(16)
        memory, passes, lanes = (reader.number(4) for _ in range(3))
        if memory > MAX_KDF_KIB or passes > MAX_KDF_PASSES or lanes > MAX_KDF_LANES:
            raise Refused(TOO_LARGE)
        if not passes or not lanes or memory < 8 * lanes:
            raise Refused(MALFORMED)
        cost = {"iterations": passes, "lanes": lanes, "memory_cost": memory}
        key = Argon2id(salt=salt, length=32, **cost).derive(passphrase)
    elif kind == 2 and code is not None:
        key = derive("recovery", code + vault_id)
    elif kind in (1, 2, 3, 4):
        return None
    else:
        raise Refused(MALFORMED)
    associated = data[: reader.at]
    plain = opened(AESGCMSIV(key), reader.take(NONCE), reader.take(reader.rest()), associated)
    return Reader(plain).take(32)


class Place(NamedTuple):
    """Where a chunk lies."""

    pack: str
    offset: int
    sealed: int
    descriptor: int
    plain: int
    keys: "Keys"


class Piece(NamedTuple):
    """A part of a file: a chunk, a hole without an id, or a list of further pieces."""

    length: int
    id: bytes | None
    is_list: bool = False


@dataclass
class Entry:
    """A folder, file, link, device or pipe."""

    path: bytes
    kind: int
    mode: int
    owner: tuple[int, int]
    modified_ns: int
    size: int = 0
    pieces: list[Piece] = field(default_factory=list)
    target: bytes = b""
    #: Major and minor number.
    device: tuple[int, int] = (0, 0)
    same_as: bytes | None = None
    attributes: dict[bytes, bytes] = field(default_factory=dict)


class Vault:
    """An unlocked vault."""

    def __init__(self, store: Folder, passphrase: bytes | None = None, code: str | None = None):
        self.store = store
        config = store.get("config", MAX_CONFIG)
        check_header(config, CONFIG, None)
        if len(config) != HEADER + 12 + 1 + 8 + 32 + 64 or config[HEADER + 12] > 1:
            raise Refused(MALFORMED)
        check_signature(config, config[-96:-64])
        self.vault_id = config[8:24]
        self.owners = Owners(store, self.vault_id, config[-96:-64])
        #: By generation; the newest is the vault's.
        self.generations = self._unlock(passphrase, code)
        self.keys = self.generations[-1]
        self.places: dict[bytes, list[Place]] = {}
        self.trailers: dict[str, list[tuple[bytes, Place]]] = {}
        #: Packs whose trailer cannot be read, and why.
        self.damaged: dict[str, str] = {}
        #: What is no part of the chain or is missing from it, and why.
        self.foreign: dict[str, str] = dict(self.owners.foreign)
        for key in store.names("packs"):
            try:
                self.trailers[key] = self._trailer(key)
            except Refused as refused:
                self.damaged[key] = refused.code
        for ident, place in (chunk for chunks in self.trailers.values() for chunk in chunks):
            self.places.setdefault(ident, []).append(place)
        # What only the owner can have written comes first.
        for places in self.places.values():
            places.sort(key=lambda place: place.keys is not self.keys)

    def _unlock(self, passphrase: bytes | None, code: str | None) -> list[Keys]:
        """The keys of all generations, for who opens a slot of the newest main key."""
        secret = None if code is None else recovery_code(code)
        failure = Refused(NOT_AUTHENTIC)
        for key in self.store.names("keys"):
            try:
                slot = self.store.get(key, MAX_SLOT)
                main = open_slot(slot, self.vault_id, passphrase, secret)
            except Refused as refused:
                failure = refused
                continue
            if main is None:
                continue
            newest = Keys(main, self.vault_id)
            # Anyone can make a slot, and one of before a change opens no more.
            if newest.verifying() == self.owners.keys[-1]:
                before = self.owners.rotations[-1].open(newest) if self.owners.rotations else []
                keys = [*(Keys(main, self.vault_id) for main in before), newest]
                if [one.verifying() for one in keys] != self.owners.keys:
                    raise Refused(SIGNATURE)
                return keys
        raise failure

    def keys_of(self, header: bytes) -> Keys:
        """The keys of an object, by its header."""
        if header[7] >= len(self.generations):
            raise Refused(MALFORMED)
        return self.generations[header[7]].of(header)

    def _trailer(self, key: str) -> list[tuple[bytes, Place]]:
        """The chunks of a pack, in order."""
        size = (self.store.root / key).stat().st_size
        if size > MAX_PACK:
            raise Refused(TOO_LARGE)
        head, tail = self.store.range(key, 0, 1 << 16), Reader(self.store.range(key, -8, 8))
        head = head[: check_header(head, PACK, self.keys.vault_id).at]
        keys = self.keys_of(head)
        length = tail.number(4)
        offset = size - 8 - length
        if tail.take(4) != MAGIC:
            raise Refused(TRUNCATED)
        if length > MAX_TRAILER or offset < len(head):
            raise Refused(MALFORMED)
        record = self.store.range(key, offset, length)
        reader = Reader(keys.record(record, head + struct.pack("<Q", offset)))
        at, chunks = len(head), []
        for _ in range(reader.varint(MAX_TRAILER)):
            ident, descriptor = reader.take(ID), reader.number(1)
            plain, sealed = reader.varint(MAX_CHUNK), reader.varint(MAX_PACK)
            chunks.append((ident, Place(key, at, sealed, descriptor, plain, keys)))
            at += sealed
        reader.end()
        if at != offset:
            raise Refused(MALFORMED)
        return chunks

    def chunk(self, ident: bytes, kind: int, place: Place | None = None) -> bytes:
        """A chunk's plaintext, from the first of its places that gives it."""
        failure = Refused(MISSING)
        for place in [place] if place else self.places.get(ident, []):
            try:
                return self._chunk_at(ident, kind, place)
            except Refused as refused:
                failure = refused
        raise failure

    def _chunk_at(self, ident: bytes, kind: int, place: Place) -> bytes:
        if place.descriptor >> 6 != kind or not 1 <= place.plain <= MAX_CHUNK:
            raise Refused(MALFORMED)
        sealed = self.store.range(place.pack, place.offset, place.sealed)
        if len(sealed) < place.sealed:
            raise Refused(TRUNCATED)
        lengths = struct.pack("<BBI", 1, place.descriptor, place.plain)
        associated = MAGIC + lengths + self.keys.vault_id + ident
        packed = opened(place.keys.chunks, ident[:NONCE], sealed, associated)
        plain = decompressed(packed, place.descriptor & 0x3F, place.plain)
        # Ids stay those of the first main key.
        if blake3(plain, key=self.generations[0].ids[kind]).digest()[:ID] != ident:
            raise Refused(NOT_AUTHENTIC)
        return plain

    def snapshots(self) -> list[Snapshot]:
        """The believed links of the chain, oldest first; what is foreign is in `foreign`."""
        return read_chain(self)

    def entries(self, pages: list[bytes]) -> Iterator[Entry]:
        """The entries of a snapshot, in their order."""
        before: list[bytes] = []
        for ident in pages:
            for entry in read_page(self.chunk(ident, PAGE), before):
                before = entry.path.split(b"/")
                yield entry

    def from_packs(self) -> list[Entry]:
        """The newest entry of every path that any pack tells of, without any snapshot."""
        found: dict[bytes, Entry] = {}
        chunks = (chunk for chunks in self.trailers.values() for chunk in chunks)
        for ident, place in (one for one in chunks if one[1].descriptor >> 6 == PAGE):
            for entry in read_page(self.chunk(ident, PAGE, place), []):
                known = found.get(entry.path)
                if known is None or known.modified_ns <= entry.modified_ns:
                    found[entry.path] = entry
        return [found[path] for path in sorted(found, key=lambda path: path.split(b"/"))]

    def content(self, entry: Entry) -> Iterator[tuple[int, bytes | None]]:
        """A file's pieces: lengths, and bytes where there is no hole."""
        for piece in entry.pieces:
            for part in self._parts(piece) if piece.is_list else [piece]:
                plain = None if part.id is None else self.chunk(part.id, DATA)
                if plain is not None and len(plain) != part.length:
                    raise Refused(MALFORMED)
                yield part.length, plain

    def _parts(self, piece: Piece) -> list[Piece]:
        reader = Reader(self.chunk(piece.id, LIST))
        parts = [read_piece(reader, nested=True) for _ in range(reader.varint(MAX_PIECES))]
        reader.end()
        if sum(part.length for part in parts) != piece.length:
            raise Refused(MALFORMED)
        return parts


def decompressed(packed: bytes, how: int, plain: int) -> bytes:
    """Exactly `plain` bytes, whatever the input says of itself."""
    out = packed if how == 0 else b""
    try:
        if how == 1:
            out = lz4.block.decompress(packed, uncompressed_size=plain)
        elif 17 <= how <= 38:
            if zstandard.frame_content_size(packed) not in (-1, plain):
                raise Refused(MALFORMED)
            frame = zstandard.ZstdDecompressor(max_window_size=1 << 27)
            out = frame.decompress(packed, max_output_size=plain, allow_extra_data=False)
    except (lz4.block.LZ4BlockError, zstandard.ZstdError, ValueError):
        raise Refused(MALFORMED) from None
    if len(out) != plain:
        raise Refused(MALFORMED)
    return out


def read_piece(reader: Reader, nested: bool = False) -> Piece:
    """A piece of a file."""
    kind, length = reader.number(1), reader.varint(1 << 62)
    if kind > 2 or (kind == 2 and nested):
        raise Refused(MALFORMED)
    return Piece(length, None if kind == 1 else reader.take(ID), kind == 2)


def read_page(data: bytes, before: list[bytes]) -> Iterator[Entry]:
    """The entries of one page, which go on where the page before it ended."""
    reader, path, left = Reader(data), b"", MAX_PAGE_PIECES
    attributes = MAX_PAGE_ATTRIBUTES
    if reader.number(1) != 1:
        raise Refused(VERSION)
    for _ in range(reader.varint(MAX_PAGE_ENTRIES)):
        entry = read_entry(Reader(reader.bytes(MAX_CHUNK)), path)
        path, parts = entry.path, entry.path.split(b"/")
        left -= len(entry.pieces)
        attributes -= len(entry.attributes)
        if parts <= before or left < 0 or attributes < 0:
            raise Refused(MALFORMED)
        before = parts
        yield entry
    reader.end()


def read_entry(reader: Reader, before: bytes) -> Entry:
    """An entry of a page, behind the path of the one before it."""
    kind, shared = reader.number(1), reader.varint(MAX_PATH)
    if kind > FIFO or shared > len(before):
        raise Refused(MALFORMED)
    path = check_path(before[:shared] + reader.bytes(MAX_PATH))
    mode, owner = reader.varint(0o7777), (reader.varint(), reader.varint())
    entry = Entry(path, kind, mode, owner, reader.number(8, signed=True))
    if kind == 1:
        entry.size = reader.varint(1 << 62)
        entry.pieces = [read_piece(reader) for _ in range(reader.varint(MAX_FILE_LISTS))]
        if sum(piece.length for piece in entry.pieces) != entry.size:
            raise Refused(MALFORMED)
    elif kind == 2:
        entry.target = reader.bytes(MAX_PATH)
        if b"\0" in entry.target or not entry.target:
            raise Refused(MALFORMED)
    elif kind in (CHARACTER, BLOCK):
        entry.device = (reader.varint((1 << 32) - 1), reader.varint((1 << 32) - 1))
    found = extensions(reader)
    entry.same_as = None if 1 not in found or kind == FOLDER else check_path(found[1])
    entry.attributes = read_attributes(found[2]) if 2 in found else {}
    return entry


def read_attributes(data: bytes) -> dict[bytes, bytes]:
    """Extended attributes, sorted by name, each name once."""
    reader, found, last = Reader(data), {}, b""
    for _ in range(reader.varint(MAX_PAGE_ATTRIBUTES)):
        name, value = reader.bytes(MAX_ATTRIBUTE_NAME), reader.bytes(MAX_ATTRIBUTE)
        if name <= last or b"\0" in name:
            raise Refused(MALFORMED)
        found[name], last = value, name
    reader.end()
    if sum(len(name) + len(value) for name, value in found.items()) > MAX_ATTRIBUTES:
        raise Refused(MALFORMED)
    return found


def extensions(reader: Reader) -> dict[int, bytes]:
    """Tags and values to the end."""
    found = {}
    while reader.rest():
        tag = reader.varint()
        found[tag] = reader.bytes(len(reader.data))
    return found


def check_path(path: bytes) -> bytes:
    """A relative path that stays where it is put."""
    parts = path.split(b"/")
    if len(path) > MAX_PATH or b"\0" in path or any(part in (b"", b".", b"..") for part in parts):
        raise Refused(MALFORMED)
    return path


def chosen(vault: Vault, number: int | None = None) -> list[Entry]:
    """The entries of a snapshot; if none is named, of the owner's newest.

    A writer's is taken without its number only where the owner has none.
    """
    kept = [snapshot for snapshot in vault.snapshots() if not snapshot.is_prune]
    kept = [snapshot for snapshot in kept if number in (None, snapshot.number)]
    kept.sort(key=lambda snapshot: (snapshot.is_owners, snapshot.number))
    if not kept:
        raise Refused(MISSING)
    return list(vault.entries(kept[-1].pages))


def restore(vault: Vault, entries: list[Entry], target: os.PathLike | str) -> dict[bytes, str]:
    """Writes entries into a folder that is new or empty; gives what was refused, by path.

    Links are made last, so that nothing is ever written through one. Nobody gets an owner here, so
    that devices and attributes that give rights stay away as well.
    """
    root = os.fsencode(target)
    os.makedirs(root, exist_ok=True)
    if os.listdir(root):
        raise FileExistsError(f"{os.fsdecode(root)} is not empty")
    failed: dict[bytes, str] = {}
    whole: set[bytes] = set()
    by_kind = [[entry for entry in entries if entry.kind == kind] for kind in range(6)]
    for entry in entries:
        path = os.path.join(root, entry.path)
        os.makedirs(path if entry.kind == 0 else os.path.dirname(path), exist_ok=True)
    for entry in by_kind[1]:
        path = os.path.join(root, entry.path)
        try:
            if entry.same_as in whole:
                os.link(os.path.join(root, entry.same_as), path)
            else:
                write_file(vault, entry, path)
            whole.add(entry.path)
        except Refused as refused:
            failed[entry.path] = refused.code
    for entry in by_kind[FIFO]:
        path = os.path.join(root, entry.path)
        os.mkfifo(path)
        dress(entry, path)
    failed.update((entry.path, "NoDevice") for entry in by_kind[CHARACTER] + by_kind[BLOCK])
    for entry in by_kind[2]:
        path = os.path.join(root, entry.path)
        os.symlink(entry.target, path)
        os.utime(path, ns=(entry.modified_ns,) * 2, follow_symlinks=False)
    for entry in reversed(by_kind[0]):
        dress(entry, os.path.join(root, entry.path))
    return failed


def dress(entry: Entry, path: bytes) -> None:
    """Gives a file, folder or pipe its words of users, its mode and its time."""
    for name, value in entry.attributes.items():
        if name.startswith(b"user."):
            os.setxattr(path, name, value)
    os.chmod(path, entry.mode)
    os.utime(path, ns=(entry.modified_ns,) * 2)


def write_file(vault: Vault, entry: Entry, path: bytes) -> None:
    """Writes a file piece by piece; one that is refused leaves nothing."""
    with open(path, "xb") as file:
        try:
            for length, plain in vault.content(entry):
                if plain is None:
                    file.seek(length, os.SEEK_CUR)
                else:
                    file.write(plain)
            file.truncate(entry.size)
        except Refused:
            os.unlink(path)
            raise
    dress(entry, path)
