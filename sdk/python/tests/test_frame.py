"""Holds the reader against vectors/frame."""

import unittest

import sealane
from vectors import cases, refusal


def keys(case: dict) -> sealane.Keys:
    given = case["keys"]
    return sealane.Keys.provisioned(
        bytes.fromhex(given["group_id"]),
        bytes.fromhex(given["secret"]),
        suite=case["suite"],
        is_pair=given["is_pair"],
        signers={slot: bytes.fromhex(key) for slot, key in given["signers"]},
    )


def opened(case: dict) -> sealane.OpenedFrame:
    frame = bytes.fromhex(case["frame"])
    if case["form"] == "full":
        return sealane.open(frame, keys(case))
    given = case["link"]
    link = sealane.Link(
        bytes.fromhex(given["next_hop"]),
        bytes.fromhex(given["previous_hop"]),
        {byte: bytes.fromhex(entry) for byte, entry in given["dictionary"]},
        {(bytes.fromhex(group), slot): bytes.fromhex(tag) for group, slot, tag in given["roster"]},
    )
    return sealane.open_compact(frame, keys(case), link)


class Frames(unittest.TestCase):
    def test_frames(self):
        for case in cases("frame/frames.json"):
            with self.subTest(case["name"], suite=case["suite"]):
                if case["error"]:
                    self.assertEqual(refusal(lambda: opened(case)), case["error"])
                    continue
                frame, expected = opened(case), case["opened"]
                self.assertEqual(frame.body.hex(), expected["body"])
                self.assertEqual(frame.header.encode().hex(), expected["header"])
                said = (frame.klass, frame.slot, frame.epoch, frame.header.sequence)
                names = ("class", "slot", "epoch", "sequence")
                self.assertEqual(said, tuple(expected[name] for name in names))

    def test_what_a_relay_sends_on(self):
        for case in cases("frame/relayed.json"):
            with self.subTest(case["name"]):
                given = [bytes.fromhex(case[name]) for name in ("frame", "next_hop", "own")]
                sent = []
                code = refusal(lambda: sent.append(sealane.forward(*given).hex()))
                self.assertEqual(code, case["error"])
                self.assertEqual(sent, [case["forwarded"]] * (not code))

    def test_fragments_and_batches(self):
        for case in cases("frame/units.json"):
            with self.subTest(case["name"]):
                joiner, frames, code = sealane.Joiner(), [], None
                for unit in case["units"]:
                    work = lambda: frames.extend(joiner.push(bytes.fromhex(unit)))
                    code = refusal(work) or code
                self.assertEqual([frame.hex() for frame in frames], case["frames"])
                self.assertEqual(code, case["error"])


if __name__ == "__main__":
    unittest.main()
