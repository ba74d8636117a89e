"""The owners of a vault, one after the other: written from spec/vault.md, sections 2 and 12."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from blake3 import blake3

from .refused import Refused

if TYPE_CHECKING:
    from .vault import Folder, Keys

NO_END = (1 << 64) - 1
HAND_OVER = b"\xff" * 8
MAX_ROSTER, MAX_ROTATION, MAX_ROTATIONS = 32 << 10, 32 << 10, 64
ROSTER, ROTATION, IDENTITY = 8, 9, 1248


class Rotation(NamedTuple):
    """A change of the main key."""

    before: bytes
    after: bytes
    hash: bytes
    #: What stands before the sealed part, and that part.
    head: bytes
    record: bytes

    def open(self, keys: Keys) -> list[bytes]:
        """The main keys before, oldest first, for who has the new one."""
        from .vault import MALFORMED

        plain = keys.record(self.record, self.head)
        if len(plain) != 32 * self.head[7]:
            raise Refused(MALFORMED)
        return [plain[at : at + 32] for at in range(0, len(plain), 32)]


class Head(NamedTuple):
    """What anyone reads of a link."""

    data: bytes
    number: int
    previous: bytes
    signer: bytes
    #: The links that it names, each with its hash.
    pairs: list[tuple[int, bytes]]
    #: Where the sealed part begins.
    sealed: int

    @property
    def hash(self) -> bytes:
        return blake3(self.data).digest()


class Owners:
    """Who signs where in the chain, and the writers of the newest list of slots."""

    def __init__(self, store: Folder, vault_id: bytes, first: bytes):
        self.store, self.vault_id = store, vault_id
        #: What is no change or list of this vault, and why.
        self.foreign: dict[str, str] = {}
        #: By slot id: a key that may sign, and the last number that is believed of it.
        self.writers: dict[bytes, tuple[bytes, int]] = {}
        #: The links with which owners handed over: numbers and hashes.
        self.hand_overs: list[tuple[int, bytes]] = []
        self.keys = [first]
        proposed = self._rotations(first)
        self._newest_list([first, *(rotation.after for rotation in proposed)])
        for rotation in proposed[len(self.hand_overs) :]:
            found = self._find_hand_over(rotation)
            if found is None:
                break
            self.hand_overs.append(found)
        #: The changes that are in force.
        self.rotations = proposed[: len(self.hand_overs)]
        self.keys += [rotation.after for rotation in self.rotations]
        self.named = self._named()

    def at(self, number: int) -> bytes:
        """The owner whose signature counts under a number."""
        return self.keys[sum(number > last for last, _ in self.hand_overs)]

    def lacks(self, number: int, hashed: bytes | None) -> bool:
        """Whether the newest hand-over names other links up to its own."""
        if self.named is None or number > self.hand_overs[-1][0]:
            return False
        return number not in self.named or hashed not in (None, self.named[number])

    def _rotations(self, owner: bytes) -> list[Rotation]:
        from .vault import MALFORMED

        found: list[Rotation] = []
        for key in self.store.names("rotations")[:MAX_ROTATIONS]:
            try:
                rotation = read_rotation(self.store.get(key, MAX_ROTATION), self.vault_id)
                follows = key == f"rotations/{len(found) + 1:03}" and rotation.before == owner
                if not follows or rotation.head[7] != len(found) + 1:
                    raise Refused(MALFORMED)
            except Refused as refused:
                self.foreign[key] = refused.code
                continue
            owner = rotation.after
            found.append(rotation)
        return found

    def _newest_list(self, owners: list[bytes]) -> None:
        """Takes writers and hand-overs from the newest list that one of the owners signed."""
        from .vault import MALFORMED, SIGNATURE, check_header, check_signature

        newest = -1
        for key in reversed(self.store.names("roster")):
            try:
                data = self.store.get(key, MAX_ROSTER)
                reader = check_header(data, ROSTER, self.vault_id)
                generation, number, writers = data[7], reader.number(8), {}
                for _ in range(reader.number(2)):
                    slot, kind, _hash = reader.take(8), reader.number(1), reader.take(32)
                    writer, until = reader.take(32), reader.number(8)
                    if kind == 4:
                        writers[slot] = (writer, until)
                hand_overs = [(reader.number(8), reader.take(32)) for _ in range(generation)]
                reader.take(64)
                reader.end()
                if generation >= len(owners):
                    raise Refused(SIGNATURE)
                check_signature(data, owners[generation])
                if key != f"roster/{number:010}":
                    raise Refused(MALFORMED)
                if generation > newest:
                    newest, self.writers, self.hand_overs = generation, writers, hand_overs
            except Refused as refused:
                self.foreign[key] = refused.code

    def _find_hand_over(self, rotation: Rotation) -> tuple[int, bytes] | None:
        """The first link behind the hand-over before that puts a change into force."""
        from .vault import check_signature

        last = self.hand_overs[-1][0] if self.hand_overs else 0
        for key in self.store.names("snapshots"):
            try:
                link = read_head(self.store, key, self.vault_id)
                names = link.signer == HAND_OVER and link.pairs[:1] == [(0, rotation.hash)]
                if names and link.number > last:
                    check_signature(link.data, rotation.before)
                    return link.number, link.hash
            except Refused:
                continue
        return None

    def _named(self) -> dict[int, bytes] | None:
        """The links that the newest hand-over names, its own among them; none if it is lost."""
        if not self.hand_overs:
            return None
        last, hashed = self.hand_overs[-1]
        try:
            link = read_head(self.store, f"snapshots/{last:010}", self.vault_id)
        except Refused:
            return None
        return dict(link.pairs) | {last: hashed} if link.hash == hashed else None


def read_head(store: Folder, key: str, vault_id: bytes) -> Head:
    """The part of a link that needs no key."""
    from .vault import MALFORMED, MAX_SNAPSHOT, SNAPSHOT, TRUNCATED, check_header

    data = store.get(key, MAX_SNAPSHOT)
    reader = check_header(data, SNAPSHOT, vault_id)
    number, previous, signer = reader.number(8), reader.take(32), reader.take(8)
    if key != f"snapshots/{number:010}" or number == 0:
        raise Refused(MALFORMED)
    count = reader.number(4)
    if count * 40 + 64 > reader.rest():
        raise Refused(TRUNCATED)
    pairs = [(reader.number(8), reader.take(32)) for _ in range(count)]
    return Head(data, number, previous, signer, pairs, reader.at)


def read_rotation(data: bytes, vault_id: bytes) -> Rotation:
    """A change of the main key that both of its owners signed."""
    from .vault import TRUNCATED, check_header, check_signature

    reader = check_header(data, ROTATION, vault_id)
    before, after = reader.take(32), reader.take(32)
    reader.take(IDENTITY + 1 + 8)
    reader.take(reader.number(2) * 81)
    if reader.rest() < 128:
        raise Refused(TRUNCATED)
    check_signature(check_signature(data, before), after)
    return Rotation(before, after, blake3(data).digest(), data[: reader.at], data[reader.at : -128])
