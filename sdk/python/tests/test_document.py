"""The reader of documents against the vectors."""

import unittest

import sealane
from vectors import cases, refusal


class Documents(unittest.TestCase):
    def test_each_body_says_what_the_vectors_say(self):
        for case in cases("document/bodies.json"):
            with self.subTest(case["name"]):
                body = bytes.fromhex(case["body"])
                if case["document"] is None:
                    refused = refusal(lambda: sealane.read_document(case["data_type"], body))
                    self.assertEqual(refused, case["error"])
                else:
                    shown = sealane.read_document(case["data_type"], body)
                    self.assertEqual(shown, case["document"])

    def test_a_body_that_is_cut_is_refused_or_says_less(self):
        for case in cases("document/bodies.json"):
            for size in range(len(case["body"]) // 2):
                cut = bytes.fromhex(case["body"])[:size]
                try:
                    shown = sealane.read_document(case["data_type"], cut)
                except sealane.Refused:
                    continue
                self.assertNotEqual(shown, case["document"], case["name"])


if __name__ == "__main__":
    unittest.main()
