"""Notices of a group's control stream: spec/group.md, *Chain* and *Notices*."""

from dataclasses import dataclass

from blake3 import blake3
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .refused import Refused

VERSION = 3
KINDS = {1: "order", 2: "renewal", 3: "heartbeat", 4: "removal"}
SIGNATURE = 64
LATTICE_SIGNATURE = 3309
MAX_SLOT = 1023


@dataclass(frozen=True)
class Notice:
    """A notice whose Ed25519 signature verifies."""

    kind: str
    #: The fields of its kind, by name.
    fields: dict
    #: All but its signatures.
    signed: bytes

    def head(self) -> bytes | None:
        """The head of the chain behind an order or a renewal."""
        if self.kind not in ("order", "renewal"):
            return None
        return blake3(self.signed, derive_key_context="Sealane 1.0 chain of orders").digest()


def read_notice(data: bytes, group: bytes, key: bytes) -> Notice:
    """Reads a notice of that group that the Ed25519 key has signed."""
    version, kind = (data[0] >> 4, data[0] & 15) if data else (0, 0)
    if version == 0 and kind in KINDS:
        raise Refused("SL-GROUP-30")
    if version != VERSION and version > 0:
        raise Refused("SL-GROUP-07" if version > VERSION else "SL-GROUP-30")
    if kind not in KINDS or version == 0:
        raise Refused("SL-GROUP-06")
    name = KINDS[kind]
    tail = SIGNATURE + (LATTICE_SIGNATURE if name == "renewal" else 0)
    if len(data) <= tail:
        raise Refused("SL-GROUP-06")
    signed, signature = data[:-tail], data[-tail:][:SIGNATURE]
    fields = _FIELDS[name](_Bytes(signed[1:]))
    if fields.get("group", group) != group:
        raise Refused("SL-GROUP-25")
    label = f"Sealane 1.0 {name} ".encode()
    # A renewal names its group itself, and is signed without the first byte of its notice.
    text = label + signed[1:] if name == "renewal" else label + group + signed
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, text)
    except InvalidSignature:
        raise Refused("SL-GROUP-10") from None
    return Notice(name, fields, signed)


def epoch_secret(carried: bytes, head: bytes) -> bytes:
    """The secret of an epoch: what its order carries, bound to the head behind that order."""
    return blake3(b"Sealane 1.0 epoch of a chain " + head, key=carried).digest()


class _Bytes:
    """Fields from the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.rest = data

    def take(self, count: int) -> bytes:
        if len(self.rest) < count:
            raise Refused("SL-GROUP-06")
        taken, self.rest = self.rest[:count], self.rest[count:]
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def end(self) -> None:
        if self.rest:
            raise Refused("SL-GROUP-06")


def _order(data: _Bytes) -> dict:
    fields = {"number": data.number(8), "before": data.take(32), "given": data.number(2)}
    if not data.rest:
        raise Refused("SL-GROUP-06")
    return {**fields, "frame": data.rest}


def _renewal(data: _Bytes) -> dict:
    if data.take(4) != b"SLRN":
        raise Refused("SL-GROUP-06")
    version = data.number(1)
    if version != VERSION:
        raise Refused("SL-GROUP-07" if version > VERSION else "SL-GROUP-30")
    fields = {"group": data.take(32), "number": data.number(8), "before": data.take(32)}
    fields |= {"given": data.number(2), "epoch": data.number(8)}
    flags = data.number(1)
    if flags > 1:
        raise Refused("SL-GROUP-06")
    return {**fields, "is_anew": flags == 1, "sealed": data.rest}


def _heartbeat(data: _Bytes) -> dict:
    fields = {"orders": data.number(8), "head": data.take(32)}
    fields |= {"epoch": data.number(8), "time_ms": data.number(8)}
    data.end()
    return fields


def _removal(data: _Bytes) -> dict:
    fields = {"order": data.number(8), "epoch": data.number(8)}
    fields |= {"slot": data.number(2), "mark": data.number(8)}
    data.end()
    if fields["slot"] > MAX_SLOT:
        raise Refused("SL-GROUP-06")
    return fields


_FIELDS = {"order": _order, "renewal": _renewal, "heartbeat": _heartbeat, "removal": _removal}
