"""The reader of stored messages against bytes that tests compose."""

import unittest
import unittest.mock

import sealane
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from seal_writer import CONVERSATION, LINK, STREAM, Message, binding, header
from vectors import refusal

FORMS = ("full", "compact")
OTHER = b"contextB"


def verifying(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def term(first: int = 0, end: int | None = None, slot: int = 7, seed: bytes = b"\x51" * 32):
    return sealane.Term(slot, first, end, verifying(seed))


def pair(**others) -> Message:
    return Message("P", slot=1, group=b"\x09" * 32, **others)


def keys(message: Message, **others) -> sealane.Keys:
    given = {
        "suite": message.suite,
        "is_pair": message.group == b"\x09" * 32,
        "secrets": {message.epoch: message.secret},
        "terms": [term(slot=message.slot)],
        "near": message.epoch,
    }
    return sealane.Keys(message.group, **{**given, **others})


def handed(message: Message, form: str = "full", **others) -> sealane.Sealed:
    clear = len(message.body) if message.klass == "A" else 0
    given = {"data": message.sealed(form), "context": message.context, "binding": message.bound}
    return sealane.Sealed(**{**given, "meta": message.meta, "form": form, "clear": clear, **others})


def code(message: Message, given: dict | None = None, form: str = "full", **others) -> str | None:
    sealed = handed(message, form, **others)
    return refusal(lambda: sealane.open_stored(keys(message, **(given or {})), sealed))


class Stored(unittest.TestCase):
    def test_every_class_opens_in_both_forms_and_suites(self):
        for klass in "ACSP":
            message = pair() if klass == "P" else Message(klass)
            for form in FORMS:
                for suite in (5, 61441):
                    with self.subTest(klass, form=form, suite=suite):
                        self.opens(message.but(suite=suite), form)

    def opens(self, message: Message, form: str = "full", **given):
        opened = sealane.open_stored(keys(message, **given), handed(message, form))
        expected = (message.body, message.klass, message.slot, message.epoch)
        expected += (message.counter, message.context)
        said = (opened.body, opened.klass, opened.slot, opened.epoch)
        self.assertEqual((*said, opened.counter, opened.context), expected)

    def test_numbers_of_every_size_open(self):
        for slot, epoch, counter in (
            (0, 0, 0),
            (0, 7, 7),
            (1023, 255, 8),
            (1023, 2**40, 2**40 - 1),
        ):
            message = Message(slot=slot, epoch=epoch, counter=counter)
            for form in FORMS:
                self.opens(message, form)

    def test_a_key_id_means_the_nearest_epoch(self):
        for form, below, above in (("full", 127, 128), ("compact", 7, 8)):
            message = Message("S", epoch=1000)
            for near, expected in ((1000 + below, None), (1000 - above, None)):
                self.assertEqual(code(message, {"near": near}, form), expected)
            for near in (1000 + below + 1, 1000 - above - 1):
                self.assertEqual(code(message, {"near": near}, form), "SL-SEAL-08")

    def test_a_context_has_keys_of_its_own(self):
        for klass in "ACS":
            self.assertEqual(code(Message(klass), context=OTHER), "SL-SEAL-03")

    def test_a_message_opens_in_its_place_only(self):
        topic, group = "fleet/7/location", b"\x07" * 32
        places = {
            sealane.BOUND_TO_LINK: binding(LINK),
            sealane.bound_to_stream(topic): binding(STREAM, topic.encode()),
            sealane.bound_to_conversation(group): binding(CONVERSATION, group),
        }
        for klass in "ACS":
            for sealed_for in places.values():
                message = Message(klass, bound=sealed_for)
                for found_in, same in places.items():
                    expected = None if same == sealed_for else "SL-SEAL-03"
                    self.assertEqual(code(message, binding=found_in), expected)

    def test_a_signature_holds_for_its_epoch_and_context(self):
        message = Message("S", epoch=300)
        for inner in (message.but(epoch=44), message.but(context=OTHER)):
            signature = inner.signature()
            with unittest.mock.patch.object(Message, "signature", lambda _, made=signature: made):
                self.assertEqual(code(message), "SL-SEAL-04")
        self.assertEqual(code(message.but(signing_seed=b"\x52" * 32)), "SL-SEAL-04")

    def test_terms_say_who_is_a_member(self):
        for klass in "ACS":
            message = Message(klass, epoch=5)
            for terms, expected in (
                ([term(5, 6)], None),
                ([term(4, 5), term(5)], None),
                ([term(6)], "SL-SEAL-10"),
                ([term(0, 5)], "SL-SEAL-10"),
                ([term(slot=8)], "SL-SEAL-10"),
                ([], "SL-SEAL-10"),
                (None, "SL-SEAL-10" if klass == "S" else None),
            ):
                self.assertEqual(code(message, {"terms": terms}), expected, terms)

    def test_a_slot_has_the_key_of_its_term(self):
        terms = [term(0, 5, seed=b"\x52" * 32), term(5)]
        self.assertIsNone(code(Message("S", epoch=5), {"terms": terms}))
        self.assertEqual(code(Message("S", epoch=4), {"terms": terms}), "SL-SEAL-04")

    def test_the_first_reason_counts(self):
        message = Message("S")
        altered = message.sealed()[:-1] + b"!"
        unheld, strangers = {"secrets": {}}, {"terms": []}
        for expected, given, data in (
            ("SL-SEAL-01", {"is_pair": True}, b"\x80\x05" + altered),
            ("SL-SEAL-09", {"is_pair": True}, altered[:4]),
            ("SL-SEAL-02", unheld, altered[:60]),
            ("SL-SEAL-08", {**unheld, **strangers}, altered),
            ("SL-SEAL-10", strangers, altered),
            ("SL-SEAL-03", {}, altered),
        ):
            self.assertEqual(code(message, given, data=data), expected)

    def test_headers_have_one_encoding(self):
        for data, expected in (
            (b"", "SL-SEAL-02"),
            (b"\x90\x05", "SL-SEAL-02"),
            (b"\x80\x07", "SL-SEAL-01"),
            (b"\x90\x00\x08", "SL-SEAL-01"),
            (b"\x0d" + b"\x01" + bytes(5), "SL-SEAL-01"),
            (b"\xa0\x10\x00\x00", "SL-SEAL-01"),
        ):
            self.assertEqual(code(Message(), data=data + bytes(16) * (len(data) > 2)), expected)
        self.assertEqual(code(Message(), form="compact", data=header(1 << 16, 0)), "SL-SEAL-01")

    def test_classes_fit_their_group_and_layout(self):
        for message, given in (
            (Message("P"), {}),
            (pair().but(klass="C"), {}),
            (pair().but(slot=2), {}),
        ):
            self.assertEqual(code(message, given), "SL-SEAL-09")
        data = b"x" + Message().sealed()
        self.assertEqual(code(Message(), data=data, clear=1), "SL-SEAL-09")
        data = Message("A").sealed() + b"x"
        self.assertEqual(code(Message("A"), data=data), "SL-SEAL-09")

    def test_what_is_too_large_is_refused(self):
        self.assertIsNone(code(Message(meta=bytes(256))))
        self.assertEqual(code(Message(meta=bytes(257))), "SL-SEAL-16")
        self.assertEqual(code(Message(meta=bytes(257)), {"terms": []}), "SL-SEAL-10")
        data = Message().header() + bytes((16 << 20) + 16)
        self.assertEqual(code(Message(), data=data), "SL-SEAL-03")
        self.assertEqual(code(Message(), {"secrets": {}}, data=data + b"\0"), "SL-SEAL-16")


if __name__ == "__main__":
    unittest.main()
