"""Frames in both forms, and what a relay does: spec/frame.md."""

from dataclasses import dataclass, field

from . import seal
from .refused import Refused

HEADER = 64
RELAY = 17
BROADCAST = b"\xff" * 8
MAX_HOPS = 15
MAX_BODY = (1 << 20) - 256
MAX_SEAL_HEADER = 9


@dataclass(frozen=True)
class Header:
    """The full header."""

    next_hop: bytes
    previous_hop: bytes
    hop_limit: int
    kind: int
    flags: int
    codec: int
    data_type: int
    group: bytes
    source: bytes
    destination: bytes
    body_length: int
    sequence: int
    time_ms: int

    @property
    def klass(self) -> int:
        """The number of the class."""
        return self.flags & 3

    def encode(self) -> bytes:
        """The 64 bytes."""
        return b"".join(
            [
                self.next_hop,
                self.previous_hop,
                bytes([self.hop_limit, 1, self.kind, self.flags, self.codec]),
                self.data_type.to_bytes(2, "little"),
                self.group,
                self.source,
                self.destination,
                self.body_length.to_bytes(4, "little"),
                self.sequence.to_bytes(8, "little"),
                self.time_ms.to_bytes(8, "little"),
                b"\0",
            ]
        )

    def authenticated(self) -> bytes:
        """What every seal protects."""
        return self.encode()[RELAY:]


@dataclass
class Link:
    """What the two ends of a link know about compact frames on it."""

    next_hop: bytes
    previous_hop: bytes
    #: Entries of 14 bytes by dictionary byte.
    dictionary: dict[int, bytes] = field(default_factory=dict)
    #: Tags by group tag and slot.
    roster: dict[tuple[bytes, int], bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenedFrame:
    """An authentic frame. All of its header but the hops is authentic."""

    header: Header
    body: bytes
    klass: str
    slot: int
    epoch: int


def open(frame: bytes, keys: seal.Keys) -> OpenedFrame:
    """Opens a frame of the full form, as it rests in a stream."""
    header = _checked(frame)
    if header.body_length > MAX_BODY:
        raise Refused("SL-FRAME-06")
    clear = header.body_length if header.klass == 0 else 0
    inner, length = _seal_header(frame[HEADER + clear :], "full", keys.near)
    if _room(header) + length != len(frame):
        raise Refused("SL-FRAME-05")
    if (inner.klass, inner.counter) != (header.klass, header.sequence):
        raise Refused("SL-FRAME-08")
    opened = seal.open_stored(keys, "full", header.authenticated(), frame[HEADER:], clear)
    return OpenedFrame(header, opened.body, opened.klass, opened.slot, opened.epoch)


def open_compact(frame: bytes, keys: seal.Keys, link: Link) -> OpenedFrame:
    """Opens a frame of the compact form."""
    header, sealed, length = _expand(frame, keys, link)
    clear = 0
    if header.klass == 0:
        # The seal has the body of class A before its header.
        clear, end = header.body_length, length + header.body_length
        sealed = sealed[length:end] + sealed[:length] + sealed[end:]
    opened = seal.open_stored(keys, "compact", header.authenticated(), sealed, clear)
    return OpenedFrame(header, opened.body, opened.klass, opened.slot, opened.epoch)


def forward(frame: bytes, next_hop: bytes, own: bytes) -> bytes:
    """The frame as a relay sends it on."""
    header = _checked(frame)
    if header.next_hop not in (own, BROADCAST):
        raise Refused("SL-FRAME-09")
    if header.hop_limit == 0:
        raise Refused("SL-FRAME-10")
    return next_hop + own + bytes([header.hop_limit - 1]) + frame[RELAY:]


def _checked(frame: bytes) -> Header:
    """The header, and all that it alone shows."""
    if len(frame) < HEADER:
        raise Refused("SL-FRAME-01")
    number = lambda start, size: int.from_bytes(frame[start : start + size], "little")
    if frame[17] != 1:
        raise Refused("SL-FRAME-02")
    if frame[18] > 3:
        raise Refused("SL-FRAME-03")
    if frame[19] >= 0x30 or frame[63] != 0:
        raise Refused("SL-FRAME-04")
    header = Header(
        next_hop=frame[0:8],
        previous_hop=frame[8:16],
        hop_limit=min(frame[16], MAX_HOPS),
        kind=frame[18],
        flags=frame[19],
        codec=frame[20],
        data_type=number(21, 2),
        group=frame[23:27],
        source=frame[27:35],
        destination=frame[35:43],
        body_length=number(43, 4),
        sequence=number(47, 8),
        time_ms=number(55, 8),
    )
    if not 1 <= len(frame) - _room(header) <= MAX_SEAL_HEADER:
        raise Refused("SL-FRAME-05")
    return header


def _room(header: Header) -> int:
    """The frame's length but for the SFrame header."""
    return HEADER + header.body_length + _trailer(header.klass)


def _trailer(klass: int) -> int:
    return seal.TAG + (seal.SIGNATURE if seal.CLASSES[klass] == "S" else 0)


def _seal_header(data: bytes, form: str, near: int):
    try:
        return seal.parse_header(data, form, near)
    except Refused:
        raise Refused("SL-FRAME-07") from None


def _expand(frame: bytes, keys: seal.Keys, link: Link) -> tuple[Header, bytes, int]:
    """The full header, what follows the prefix, and the length of the SFrame header."""
    if len(frame) < 3:
        raise Refused("SL-FRAME-01")
    first, data_type, at = frame[0], frame[2], 3
    if first & 0x80 == 0:
        raise Refused("SL-FRAME-02")
    if first & 0x40:
        if len(frame) < 4:
            raise Refused("SL-FRAME-01")
        if frame[3] == 0:
            raise Refused("SL-FRAME-04")
        data_type, at = data_type | frame[3] << 8, 4
    entry = link.dictionary.get(frame[1])
    if entry is None:
        raise Refused("SL-FRAME-12")
    group, destination, codec, flags = entry[:4], entry[4:12], entry[12], entry[13]
    klass, most = flags & 3, 11
    if seal.CLASSES[klass] == "P":
        if len(frame) < at + 4:
            raise Refused("SL-FRAME-01")
        group, at, most = frame[at : at + 4], at + 4, 15
    sealed = frame[at:]
    inner, length = _seal_header(sealed, "compact", keys.near)
    if at + length > most:
        raise Refused("SL-FRAME-07")
    if inner.klass != klass:
        raise Refused("SL-FRAME-08")
    body_length = len(sealed) - length - _trailer(klass)
    if body_length < 0:
        raise Refused("SL-FRAME-05")
    if body_length > MAX_BODY:
        raise Refused("SL-FRAME-06")
    source = link.roster.get((group, inner.slot))
    if source is None:
        raise Refused("SL-FRAME-14")
    hops = (link.next_hop, link.previous_hop, first & 15)
    kind = first >> 4 & 3
    tags = (group, source, destination)
    header = Header(
        *hops, kind, flags, codec, data_type, *tags, body_length, inner.counter, 0
    )
    return header, sealed, length
