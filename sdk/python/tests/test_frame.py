"""Holds the reader against vectors/frame."""

import unittest

import sealane
from test_seal import place, terms
from vectors import cases, refusal


def keys(case: dict) -> sealane.Keys:
    given = case["keys"]
    return sealane.Keys(
        bytes.fromhex(given["group_id"]),
        case["suite"],
        given["is_pair"],
        {given["epoch"]: bytes.fromhex(given["secret"])},
        terms(given["terms"]),
        given["epoch"],
    )


def link(given: dict) -> sealane.Link:
    known = sealane.Link(
        bytes.fromhex(given["next_hop"]),
        bytes.fromhex(given["previous_hop"]),
        {byte: bytes.fromhex(entry) for byte, entry in given["dictionary"]},
    )
    for one in given["roster"]:
        member = (bytes.fromhex(one["group"]), one["slot"])
        known.roster[member] = bytes.fromhex(one["tag"])
        if one["context"] is not None:
            announced = sealane.Announced(bytes.fromhex(one["context"]), one["orders"])
            known.announced[member] = announced
    return known


def ways(case: dict) -> list:
    """The ways to read a frame, which agree."""
    frame, held, found_in = bytes.fromhex(case["frame"]), keys(case), place(case["binding"])
    if case["read"] == "announcement":
        reader = sealane.Live(held, case["keys"]["own_slot"])
        return [lambda: sealane.open_announcement(frame, reader)]
    if case["form"] == "full":
        return [lambda: sealane.open(frame, held, found_in)]
    known, near = link(case["link"]), case["link"]["epoch"]
    return [
        lambda: sealane.open_compact(frame, held, known, found_in),
        lambda: sealane.open(sealane.expand(frame, known, near), held, found_in),
    ]


class Frames(unittest.TestCase):
    def test_frames(self):
        for case in cases("frame/frames.json"):
            for number, way in enumerate(ways(case)):
                with self.subTest(case["name"], suite=case["suite"], way=number):
                    if case["error"]:
                        self.assertEqual(refusal(way), case["error"])
                    else:
                        self.check(way(), case["opened"])

    def check(self, frame: sealane.OpenedFrame, expected: dict):
        header = frame.header
        self.assertEqual(frame.body.hex(), expected["body"])
        self.assertEqual(header.encode().hex(), expected["header"])
        said = (frame.klass, frame.slot, frame.epoch, header.sequence, header.context.hex())
        names = ("class", "slot", "epoch", "sequence", "context", "orders")
        self.assertEqual((*said, header.orders), tuple(expected[name] for name in names))

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

    def test_compact_units(self):
        for case in cases("frame/compact_units.json"):
            with self.subTest(case["name"]):
                groups = case["groups"]
                groups = None if groups is None else [bytes.fromhex(group) for group in groups]
                hops = [bytes.fromhex(case[name]) for name in ("next_hop", "previous_hop")]
                known, frames, code = sealane.CompactLink(*hops, groups), [], None
                for unit in case["units"]:
                    work = lambda: frames.extend(known.push(bytes.fromhex(unit)))
                    code = refusal(work) or code
                self.assertEqual([frame.hex() for frame in frames], case["frames"])
                self.assertEqual(code, case["error"])
                fixed = 64 * len(groups or [])
                defined = {byte: entry.hex() for byte, entry in known.dictionary.items()}
                expected = {byte: entry for byte, entry in case["defined"]}
                self.assertEqual({b: e for b, e in defined.items() if b >= fixed}, expected)


if __name__ == "__main__":
    unittest.main()
