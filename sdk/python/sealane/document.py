"""The bodies of documents, spec/document.md."""

import struct
import unicodedata

from .refused import Refused

MALFORMED, RESERVED_BITS, NO_DOCUMENT = "SL-DOC-01", "SL-DOC-03", "SL-DOC-06"

ACTIVITIES = dict(enumerate(("unknown", "rest", "moving", "exertion")))
ALERTS = ("battery", "heart-rate", "temperature", "fall", 4, 5, 6, 7)
EVENTS = dict(
    enumerate(("ping", "need-assist", "emergency", "moving", "in-position", "acknowledged"), 1)
)
KINDS = dict(enumerate(("unsaid", "medical", "fire", "attack", "lost", "trapped")))

MAX_COUNTERS = 16
MAX_COUNT = 2**53 - 1
MAX_CALLSIGN_BYTES = 12
MAX_EMERGENCY_TEXT_BYTES = 64


def read_document(data_type: int, body: bytes) -> dict:
    """What the body of a frame of that data type says; of an urgent one, behind its time."""
    read = READERS.get(data_type)
    if read is None:
        raise Refused(NO_DOCUMENT)
    fields = _Fields(body)
    document = read(fields)
    if fields.rest:
        raise Refused(MALFORMED)
    return document


class _Fields:
    """The fields of a body, from its front."""

    def __init__(self, body: bytes):
        self.rest = body

    def take(self, size: int) -> bytes:
        if len(self.rest) < size:
            raise Refused(MALFORMED)
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def flags(self, known: int) -> int:
        flags = self.number(1)
        if flags & ~known:
            raise Refused(RESERVED_BITS)
        return flags

    def leb128(self) -> int:
        number = 0
        for place in range(8):
            byte = self.number(1)
            number |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                _within(place == 0 or byte != 0)
                return number
        raise Refused(MALFORMED)

    def text(self, most: int) -> str:
        if not self.rest:
            raise Refused(MALFORMED)
        if len(self.rest) > most:
            raise Refused(MALFORMED)
        try:
            text = self.take(len(self.rest)).decode()
        except UnicodeDecodeError:
            raise Refused(MALFORMED) from None
        if any(unicodedata.category(character) == "Cc" for character in text):
            raise Refused(MALFORMED)
        return text


def _within(holds: bool) -> None:
    if not holds:
        raise Refused(MALFORMED)


def _counters(fields: _Fields) -> dict:
    totals: dict[str, int] = {}
    last = -1
    while not totals or fields.rest:
        _within(len(totals) < MAX_COUNTERS)
        counter, total = fields.number(1), fields.leb128()
        _within(counter > last and total <= MAX_COUNT)
        totals[str(counter)] = total
        last = counter
    return {"counters": totals}


def _heartbeat(fields: _Fields) -> dict:
    following, up = struct.unpack("<HI", fields.take(6))
    return ({"nextS": following} if following else {}) | {"upS": up}


def _vitals(fields: _Fields) -> dict:
    flags = fields.flags(0b1111)
    vitals = {"timeMs": fields.number(6)}
    activity, alerts = fields.number(1), fields.number(1)
    vitals["activity"] = ACTIVITIES.get(activity, activity)
    vitals["alerts"] = [name for bit, name in enumerate(ALERTS) if alerts >> bit & 1]
    # Ranges are looked at behind all fields, as the page's order of checks says.
    if flags & 1:
        vitals["batteryPercent"] = fields.number(1)
    if flags & 2:
        vitals["heartRate"] = fields.number(1)
    event = None
    if flags & 4:
        event = fields.number(1)
        vitals["last"] = {"event": EVENTS.get(event, event), "timeMs": fields.number(6)}
    if flags & 8:
        vitals["callsign"] = fields.text(MAX_CALLSIGN_BYTES)
    _within(vitals.get("batteryPercent", 0) <= 100)
    _within(20 <= vitals.get("heartRate", 20) <= 250)
    _within(event != 0)
    return vitals


def _location(fields: _Fields) -> dict:
    flags = fields.flags(0b11)
    location = {"timeMs": fields.number(6)} | _position(fields)
    if flags & 1:
        location["altitudeM"] = fields.number(3, signed=True) / 10
    if flags & 2:
        location["accuracyM"] = fields.number(2) / 10
    return location


def _position(fields: _Fields) -> dict:
    latitude, longitude = struct.unpack("<ii", fields.take(8))
    _within(abs(latitude) <= 90 * 10**7 and abs(longitude) <= 180 * 10**7)
    return {"latitude": latitude / 1e7, "longitude": longitude / 1e7}


def _emergency(fields: _Fields) -> dict:
    flags = fields.flags(0b11)
    emergency = {"number": fields.number(4)}
    kind = fields.number(1)
    emergency["kind"] = KINDS.get(kind, kind)
    if flags & 1:
        emergency |= _position(fields)
    if flags & 2:
        emergency["text"] = fields.text(MAX_EMERGENCY_TEXT_BYTES)
    return emergency


def _call(fields: _Fields) -> dict:
    return {"slot": fields.number(2), "number": fields.number(4)}


READERS = {
    1: _counters,
    2: _heartbeat,
    3: _vitals,
    4: _location,
    7: _emergency,
    8: _call,
    9: _call,
}
