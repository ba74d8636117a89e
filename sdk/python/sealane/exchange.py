"""What neighbours tell each other of documents, spec/document.md, section Exchange."""

from dataclasses import dataclass

import blake3

from . import seal
from .refused import Refused

MALFORMED = "SL-EXCHANGE-01"

MAX_SLOT = 1023
MAX_DOCUMENT_BYTES = 1024
MAX_ANSWERS_KEPT = 64
RELAY = 17
# Next hop everybody, previous hop nobody, hop limit 0.
RELAY_BYTES = b"\xff" * 8 + bytes(9)
EVERYBODY = b"\xff" * 8
URGENT = (7, 8, 9)
KEPT = {1: 1, 2: 1, 3: 1, 4: 1, 5: 32, 7: 1, 8: 64, 9: 64}
KEPT |= {number: 1 for number in range(64, 72)} | {number: 64 for number in range(72, 80)}


@dataclass(frozen=True)
class Held:
    """A frame that is kept, and what its header says."""

    slot: int
    data_type: int
    epoch: int
    counter: int
    frame: bytes

    @property
    def stamp(self) -> tuple[int, int]:
        return self.epoch, self.counter

    @property
    def mark(self) -> bytes:
        return blake3.blake3(self.frame).digest()


def hold(frame: bytes, newest: int) -> Held:
    """A frame in the full form as it is kept, of a group whose newest epoch that is."""
    header, body = frame[:64], int.from_bytes(frame[43:47], "little")
    at = 64 + (body if header[19] & 3 == 0 else 0)
    sealed, _ = seal.parse_header(frame[at:], "full", newest)
    data_type = int.from_bytes(header[21:23], "little")
    kept = RELAY_BYTES + frame[RELAY:]
    return Held(sealed.slot, data_type, sealed.epoch, sealed.counter, kept)


def digest(groups: dict[bytes, list[Held]]) -> bytes:
    """The digest in a hello of one that holds these frames, by group tag."""
    said = b"".join(tag + _group_hash(groups[tag]) for tag in sorted(groups) if groups[tag])
    return blake3.blake3(said).digest()[:8]


def _group_hash(held: list[Held]) -> bytes:
    said = b""
    for slot in _slots(held):
        said += slot.to_bytes(2, "little") + _covered(_of(held, slot))
    return blake3.blake3(said).digest()[:8]


def _slots(held: list[Held]) -> list[int]:
    return sorted({one.slot for one in held})


def _of(held: list[Held], slot: int) -> list[Held]:
    return [one for one in held if one.slot == slot]


def _covered(held: list[Held]) -> bytes:
    said = b""
    for one in sorted(held, key=lambda one: (one.data_type, one.stamp)):
        said += one.data_type.to_bytes(2, "little")
        said += one.epoch.to_bytes(8, "little") + one.counter.to_bytes(8, "little") + one.mark
    return said


def check(salt: int, held: list[Held]) -> bytes:
    """What an overview says of one origin."""
    return blake3.blake3(bytes([salt]) + _covered(held)).digest()[:3]


def marks(held: list[Held]) -> bytes:
    """What an inventory says of the frames of one register beside their stamps."""
    ascending = sorted(held, key=lambda one: one.stamp)
    return blake3.blake3(b"".join(one.mark for one in ascending)).digest()[:2]


def differing(held: list[Held], overview: dict) -> list[int]:
    """The origins of which the sender of an overview holds something else, or nothing."""
    first, last = overview["first"], overview["last"]
    theirs = dict(overview["checks"])
    ours = {slot: check(overview["salt"], _of(held, slot)).hex() for slot in _slots(held)}
    slots = {slot for slot in ours if first <= slot <= last} | set(theirs)
    return sorted(slot for slot in slots if ours.get(slot) != theirs.get(slot))


def lacking(held: list[Held], inventory: dict) -> list[Held]:
    """The frames that the sender of an inventory lacks, in the order in which they are given."""
    given = []
    for origin in inventory["origins"]:
        shown = {one["data_type"]: one for one in origin["registers"]}
        ours = _of(held, origin["slot"])
        for data_type in {one.data_type for one in ours}:
            register = [one for one in ours if one.data_type == data_type]
            given += _beyond(register, shown.get(data_type), KEPT[data_type])
    newest = lambda one: (one.data_type not in URGENT, -one.epoch, -one.counter)
    return sorted(given, key=newest)


def _beyond(register: list[Held], shown: dict | None, most: int) -> list[Held]:
    if shown is None:
        return register
    stamps = [tuple(stamp) for stamp in shown["stamps"]]
    if sorted(stamps) == sorted(one.stamp for one in register):
        return register if marks(register).hex() != shown["marks"] else []
    oldest = min(stamps) if len(stamps) >= most else (-1, -1)
    return [one for one in register if one.stamp not in stamps and one.stamp > oldest]


def read_message(message: bytes) -> dict:
    """What a message about documents says."""
    fields = _Fields(message)
    group = fields.take(4)
    sort = fields.number(1)
    read = {1: _overview, 2: _inventory, 3: _inventory, 4: _frames}.get(sort)
    if read is None:
        raise Refused(MALFORMED)
    return {"group": group.hex()} | read(fields, sort, group)


class _Fields:
    """The fields of a message, from its front."""

    def __init__(self, message: bytes):
        self.rest = message

    def take(self, size: int) -> bytes:
        if len(self.rest) < size:
            raise Refused(MALFORMED)
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def slot(self) -> int:
        slot = self.number(2)
        _ordered(slot <= MAX_SLOT)
        return slot

    def leb128(self) -> int:
        number = 0
        for place in range(10):
            byte = self.number(1)
            number |= (byte & 0x7F) << 7 * place
            _ordered(number < 1 << 64)
            if byte < 0x80:
                _ordered(place == 0 or byte != 0)
                return number
        raise Refused(MALFORMED)


def _ordered(holds: bool) -> None:
    if not holds:
        raise Refused(MALFORMED)


def _overview(fields: _Fields, _sort: int, _group: bytes) -> dict:
    salt, first, last = fields.number(1), fields.slot(), fields.slot()
    checks, following = [], first
    while fields.rest:
        slot = following + fields.leb128()
        _ordered(first <= slot <= last)
        checks.append([slot, fields.take(3).hex()])
        following = slot + 1
    return {"sort": "overview", "salt": salt, "first": first, "last": last, "checks": checks}


def _inventory(fields: _Fields, sort: int, _group: bytes) -> dict:
    origins: list[dict] = []
    while fields.rest:
        slot = fields.slot()
        _ordered(not origins or slot > origins[-1]["slot"])
        registers: list[dict] = []
        for _ in range(fields.leb128()):
            register = _register(fields)
            _ordered(not registers or register["data_type"] > registers[-1]["data_type"])
            registers.append(register)
        origins.append({"slot": slot, "registers": registers})
    return {"sort": "inventory", "is_opened": sort == 2, "origins": origins}


def _register(fields: _Fields) -> dict:
    data_type = fields.leb128()
    _ordered(data_type < 1 << 16)
    count = fields.leb128()
    _ordered(1 <= count <= MAX_ANSWERS_KEPT)
    marked = fields.take(2).hex()
    stamps: list[list[int]] = []
    for _ in range(count):
        epochs, counter = fields.leb128(), fields.leb128()
        if stamps:
            above_epoch, above = stamps[-1]
            _ordered(epochs <= above_epoch)
            if epochs == 0:
                _ordered(0 < counter <= above)
                counter = above - counter
            epochs = above_epoch - epochs
        stamps.append([epochs, counter])
    return {"data_type": data_type, "marks": marked, "stamps": stamps}


def _frames(fields: _Fields, _sort: int, group: bytes) -> dict:
    frames = []
    while fields.rest:
        head = fields.leb128()
        _ordered(head >> 1 <= MAX_DOCUMENT_BYTES - RELAY)
        part = fields.take(head >> 1)
        frames.append((part if head & 1 else whole_form(group, part)).hex())
    return {"sort": "frames", "frames": frames}


def whole_form(group: bytes, brief: bytes) -> bytes:
    """The frame of a brief form, without the 17 bytes of the relay."""
    fields = _Fields(brief)
    flags, codec, data_type = fields.number(1), fields.number(1), fields.leb128()
    _ordered(data_type < 1 << 16)
    source, context, orders = fields.take(8), fields.take(8), fields.number(1)
    rest = fields.rest
    try:
        sealed, size = seal.parse_header(rest, "full", 0)
    except Refused:
        raise Refused(MALFORMED) from None
    trailer = seal.TAG + (seal.SIGNATURE if flags & 3 == 2 else 0)
    body = len(rest) - size - trailer
    if body < 0:
        raise Refused(MALFORMED)
    frame = bytes([2, 0, flags, codec]) + data_type.to_bytes(2, "little") + group + source
    frame += EVERYBODY + body.to_bytes(4, "little") + sealed.counter.to_bytes(8, "little")
    frame += context + bytes([orders])
    if flags & 3 == 0:
        # In class A the SFrame header stands before the body here.
        rest = rest[size : size + body] + rest[:size] + rest[size + body :]
    frame += rest
    _ordered(len(frame) <= MAX_DOCUMENT_BYTES - RELAY)
    return frame
