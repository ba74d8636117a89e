"""Holds the reader of notices against vectors/group."""

import unittest

from sealane import formats as sealane
from vectors import cases, refusal


class Notices(unittest.TestCase):
    def setUp(self) -> None:
        self.all = cases("group/keys.json")
        self.group = bytes.fromhex(self.all["group"])
        self.key = bytes.fromhex(self.all["authority"]["curve"])

    def read(self, data: bytes) -> sealane.Notice:
        return sealane.read_notice(data, self.group, self.key)

    def given(self, name: str) -> bytes:
        return bytes.fromhex(self.all[name]["bytes"])

    def test_the_order_stands_on_the_chain_and_begins_its_epoch(self):
        about, notice = self.all["notice"], self.read(self.given("notice"))
        self.assertEqual(notice.fields["number"], self.all["number"])
        self.assertEqual(notice.fields["before"].hex(), about["before"])
        self.assertEqual(notice.fields["given"], about["given"])
        self.assertEqual(notice.head().hex(), about["head"])
        begun = sealane.epoch_secret(bytes.fromhex(self.all["secret"]), notice.head())
        self.assertEqual(begun.hex(), about["begun"])

    def test_the_other_notices(self):
        heartbeat = self.read(self.given("heartbeat"))
        about = self.all["heartbeat"]
        self.assertEqual(heartbeat.fields["head"].hex(), about["head"])
        self.assertEqual(heartbeat.fields["time_ms"], about["time_ms"])
        self.assertEqual(heartbeat.fields["orders"], self.all["number"])
        removal, about = self.read(self.given("removal")), self.all["removal"]
        for field in ("slot", "mark"):
            self.assertEqual(removal.fields[field], about[field])
        renewal = self.read(self.given("renewal"))
        self.assertEqual(renewal.fields["epoch"], self.all["epoch"])
        self.assertFalse(renewal.fields["is_anew"])
        self.assertEqual([heartbeat.head(), removal.head()], [None, None])

    def test_what_was_changed_cut_or_is_of_another_version_is_refused(self):
        for name in ("notice", "heartbeat", "removal", "renewal"):
            data = self.given(name)
            # The second signature of a renewal is another reader's to check.
            end = len(data) - (3309 if name == "renewal" else 0)
            for at in (0, 1, 9, end // 2, end - 1):
                changed = bytearray(data)
                changed[at] ^= 0x40
                self.assertIsNotNone(refusal(lambda changed=changed: self.read(bytes(changed))))
            for end in (0, 1, 20, 60):
                cut = refusal(lambda end=end, data=data: self.read(data[:end]))
                self.assertEqual(cut, "SL-GROUP-06")
            older = bytes([data[0] & 15]) + data[1:]
            self.assertEqual(refusal(lambda older=older: self.read(older)), "SL-GROUP-30")
            newer = bytes([data[0] & 15 | 0x40]) + data[1:]
            self.assertEqual(refusal(lambda newer=newer: self.read(newer)), "SL-GROUP-07")
            other = refusal(lambda data=data: sealane.read_notice(data, bytes(32), self.key))
            self.assertIn(other, ("SL-GROUP-10", "SL-GROUP-25"))


if __name__ == "__main__":
    unittest.main()
