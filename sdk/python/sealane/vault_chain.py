"""The chain of a vault's snapshots: written from spec/vault.md, sections 2 and 7."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .refused import Refused
from .vault_owners import HAND_OVER, NO_END, read_head

if TYPE_CHECKING:
    from .vault import Vault

OWNER = bytes(8)


class Snapshot(NamedTuple):
    """A link of the chain."""

    number: int
    hash: bytes
    previous: bytes
    removed: dict[int, bytes]
    is_prune: bool
    pages: list[bytes]
    is_owners: bool
    #: Whether its signer is believed: a link that is not holds its place and is no snapshot.
    is_believed: bool


def read_chain(vault: Vault) -> list[Snapshot]:
    """The believed links of the chain, oldest first. What is foreign is named in the vault."""
    found: dict[int, Snapshot] = {}
    taken: set[int] = set()
    signers = read_signers(vault)
    for key in vault.store.names("snapshots"):
        try:
            link = read_link(vault, key, signers)
            found[link.number] = link
            taken.add(link.number)
            if not link.is_believed:
                vault.foreign[key] = "SL-VAULT-09"
        except Refused as refused:
            vault.foreign[key] = refused.code
            name = key.rpartition("/")[2]
            known = name.isdigit() and len(name) == 10
            if known and not vault.owners.lacks(int(name), None):
                taken.add(int(name))
    walk = Walk(found, taken)
    # A hand-over that is lost keeps its place: its hash stands in the list of slots.
    lost = {number: hashed for number, hashed in vault.owners.hand_overs if number not in taken}
    walk.removed = lost | walk.removed
    chain = walk.run()
    for number in [*walk.missing, *lost]:
        vault.foreign.setdefault(f"snapshots/{number:010}", "SL-VAULT-03")
    for number in sorted(found):
        if found[number] not in chain:
            vault.foreign.setdefault(f"snapshots/{number:010}", "SL-VAULT-23")
    return [link for link in chain if link.is_believed]


class Walk:
    """Finds the chain among the links that there are."""

    def __init__(self, found: dict[int, Snapshot], taken: set[int]):
        self.found, self.taken = found, taken
        newest = (found[number] for number in sorted(found, reverse=True))
        owners = (link.removed for link in newest if link.is_owners and link.removed)
        self.removed: dict[int, bytes] = next(owners, {})
        #: Hashes of the chain, each with its link or, where the owner removed it, none.
        self.chain: list[tuple[bytes, Snapshot | None]] = [(bytes(32), None)]
        self.next = 1
        #: Numbers before which the chain does not lead on.
        self.missing: list[int] = []

    def run(self) -> list[Snapshot]:
        """The links, oldest first."""
        for number in sorted(self.taken | set(self.removed)):
            link, gap = self.found.get(number), number > self.next
            if number not in self.taken:
                self.push(number, self.removed[number], None)
            elif link and link.previous == self.chain[-1][0] and (link.is_owners or not gap):
                self.push(number, link.hash, link)
            elif link and link.is_owners:
                self.vouch(link)
            elif not gap:
                self.next += 1
        return [link for _, link in self.chain if link]

    def push(self, number: int, hashed: bytes, link: Snapshot | None) -> None:
        self.chain.append((hashed, link))
        self.next = number + 1

    def vouch(self, link: Snapshot) -> None:
        """Takes the owner's link, and what it leads back to."""
        by_hash = {other.hash: other for other in self.found.values() if other.number < link.number}
        back = [link]
        while True:
            wanted = back[-1].previous
            at = next((n for n, (hashed, _) in enumerate(self.chain) if hashed == wanted), None)
            if at is not None:
                del self.chain[at + 1 :]
                break
            if wanted not in by_hash:
                self.missing.append(back[-1].number - 1)
                break
            back.append(by_hash[wanted])
        self.chain.extend((one.hash, one) for one in reversed(back))
        self.next = link.number + 1


def read_signers(vault: Vault) -> dict[bytes, tuple[bytes, int]]:
    """By slot id: a key that may sign, and the last number that is believed of it."""
    from .vault import MAX_SLOT, SLOT, check_header, check_signature

    owner, signers = vault.keys.verifying(), {}
    for key in vault.store.names("keys"):
        try:
            data = vault.store.get(key, MAX_SLOT)
            reader = check_header(data, SLOT, vault.keys.vault_id)
            slot, kind = reader.take(8), reader.number(1)
            if kind == 4 and key == f"keys/{slot.hex()}" and slot not in vault.owners.writers:
                check_signature(data, owner)
                signers[slot] = (reader.take(32), NO_END)
        except Refused as refused:
            vault.foreign[key] = refused.code
    return signers | vault.owners.writers


def read_link(vault: Vault, key: str, signers: dict[bytes, tuple[bytes, int]]) -> Snapshot:
    """A link; one that nobody signs who is believed has no pages."""
    from .vault import ID, MALFORMED, SIGNATURE, VERSION
    from .vault import Reader, check_signature, extensions

    owners, head = vault.owners, read_head(vault.store, key, vault.vault_id)
    data, number, hashed = head.data, head.number, head.hash
    is_owners, hands_over = head.signer in (OWNER, HAND_OVER), head.signer == HAND_OVER
    verifying, until = signers.get(head.signer, (None, 0))
    if is_owners:
        verifying, until = owners.at(number), NO_END
    if verifying is not None:
        check_signature(data, verifying)
    if owners.lacks(number, hashed) or hands_over and (number, hashed) not in owners.hand_overs:
        raise Refused(SIGNATURE)
    if verifying is None or number > until:
        return Snapshot(number, hashed, head.previous, {}, False, [], False, False)
    sealed = data[head.sealed : -64]
    plain = Reader(vault.keys_of(data).record(sealed, data[: head.sealed]))
    if plain.number(1) != 1:
        raise Refused(VERSION)
    what, _time = plain.number(1), plain.take(8)
    _source, _note = plain.bytes(4096), plain.bytes(4096)
    _counts, _compression = [plain.varint() for _ in range(7)], plain.take(1)
    if what > 1 or len(plain.bytes(32)) not in (0, 32):
        raise Refused(MALFORMED)
    pages = [plain.take(ID) for _ in range(plain.varint(plain.rest() // ID))]
    extensions(plain)
    removed = dict(head.pairs) if is_owners and not hands_over else {}
    return Snapshot(number, hashed, head.previous, removed, what == 1, pages, is_owners, True)
