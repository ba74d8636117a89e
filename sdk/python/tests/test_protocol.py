"""What is made from the pages is current, the package is typed, and the readers stand alone."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path

import make_protocol

PACKAGE = Path(__file__).resolve().parents[1]


class TestPackage(unittest.TestCase):
    def test_types_and_refusals_are_those_of_the_pages(self):
        again = "run: python sdk/python/tests/make_protocol.py"
        for name, made in (
            ("protocol", make_protocol.types()),
            ("refusals", make_protocol.refusals()),
        ):
            text = (PACKAGE / f"sealane/{name}.py").read_text()
            self.assertEqual(text, made, f"sealane/{name}.py is old; {again}")

    def test_the_package_is_typed(self):
        try:
            import mypy  # noqa: F401
        except ImportError:
            self.skipTest("NOT RUN: mypy is missing")
        checked = subprocess.run(
            [sys.executable, "-m", "mypy"], cwd=PACKAGE, capture_output=True, text=True
        )
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_the_readers_of_formats_share_nothing_with_the_client(self):
        foreign = re.compile(r"^\s*(?:from \.\.|from sealane|import sealane)", re.M)
        for path in sorted((PACKAGE / "sealane/formats").glob("*.py")):
            self.assertIsNone(foreign.search(path.read_text()), path.name)


if __name__ == "__main__":
    unittest.main()
