"""The README and the examples run as they stand, against a real hub."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from unittest import mock

import sealane
from hub import PATIENCE, HubProcess, needs_hub

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLES = PACKAGE / "examples"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)


def until(holds, what: str) -> None:
    """Waits until it holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"in vain: {what}")
        time.sleep(0.02)


@needs_hub
class TestPages(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.hub = HubProcess()
        cls.addClassCleanup(cls.hub.close)
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        environment = {"SEALANE_SERVER": cls.hub.address, "PYTHONPATH": str(PACKAGE)}
        cls.enterClassContext(mock.patch.dict(os.environ, environment))

    @classmethod
    def enterClassContext(cls, context):  # Python 3.10 has none.
        value = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        return value

    def start(self, name: str, *words: str) -> subprocess.Popen:
        program = subprocess.Popen(
            [sys.executable, "-X", "dev", "-W", "error", EXAMPLES / name, *words],
            stdout=subprocess.PIPE,
            cwd=self.folder,
        )
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        return program

    def test_the_readme_runs_as_it_stands(self):
        page = (PACKAGE / "README.md").read_text().partition("## Readers of formats")[0]
        blocks = [
            block.replace("127.0.0.1:9087", self.hub.address) for block in BLOCK.findall(page)
        ]
        self.assertGreater(len(blocks), 5)
        self.assertLessEqual(len([line for line in blocks[0].splitlines() if line]), 10)
        said = io.StringIO()
        with sealane.Client() as client, contextlib.redirect_stdout(said):
            client.publish("house/temperature", {"celsius": 21.5})
            names = {"client": client, "readings": [{"celsius": 20.0}, {"celsius": 20.5}]}
            for block in blocks:
                ran = {**names}
                exec(compile(block, "README.md", "exec"), ran)
                names["table"] = ran.get("table", names.get("table"))
        self.assertIn("jobs/mail {'id': ", said.getvalue())
        self.assertIn("fleet/7/location 0 {'id': ", said.getvalue())
        self.assertIn(21.5, list(names["table"]["celsius"]))

    def test_the_telemetry_logger_goes_on_where_it_was_killed(self):
        log = self.folder / "fleet.jsonl"
        lines = lambda: log.read_text().count("\n") if log.exists() else 0  # noqa: E731
        with sealane.Client() as client:
            for stop in (3, 6):
                program = self.start("telemetry_logger.py", "log/*", "fleet.jsonl")
                for n in range(stop - 3, stop):
                    client.publish(f"log/{n % 2}", {"n": n})
                until(lambda: lines() == stop, "the lines of the log")
                program.kill()
                program.wait()
        numbers = [json.loads(line)["body"]["n"] for line in log.read_text().splitlines()]
        self.assertEqual(sorted(numbers), list(range(6)), "each once")

    def test_the_worker_does_all_jobs_and_gives_up_one(self):
        self.start("worker.py", "jobs/w")
        with sealane.Client() as client:
            client.publish("jobs/w", {"id": "bad", "fails": True})
            client.publish_batch("jobs/w", [{"id": f"job-{n}"} for n in range(8)])
            dead = client.subscribe("dead/jobs/w", start="first").next(PATIENCE)
            self.assertEqual((dead.body["envelope"]["id"], dead.body["attempts"]), ("bad", 5))
            undone = lambda: client.consumer("jobs/w", "workers")["unfinished"]  # noqa: E731
            until(lambda: undone() == 0, "all jobs are done")

    def test_the_agent_answers(self):
        self.start("agent.py", "agents/sum")
        with sealane.Client() as client:
            answer = client.request("agents/sum", {"numbers": [1, 2, 3]}, timeout=PATIENCE)
            self.assertEqual(answer.body["sum"], 6)
            answer = client.request("agents/sum", {}, timeout=PATIENCE)
            self.assertIn("numbers", answer.body["error"])

    def test_the_notebook_plots_a_day(self):
        try:
            import matplotlib
        except ImportError:
            self.skipTest("NOT RUN: matplotlib is missing")
        matplotlib.use("Agg")
        now = datetime.now(timezone.utc)
        with sealane.Client() as client:
            client.remove_stream("house/temperature") if "house/temperature" in [
                one["stream"] for one in client.streams("house/*")
            ] else None
            hours = [now - timedelta(minutes=20 * n) for n in range(72)]
            bodies = [{"celsius": 20.0 + n % 3, "at": at.isoformat()} for n, at in enumerate(hours)]
            client.publish_batch("house/temperature", bodies)
        notebook = json.loads((EXAMPLES / "temperatures.ipynb").read_text())
        names: dict = {}
        before = os.getcwd()
        os.chdir(self.folder)
        self.addCleanup(os.chdir, before)
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), "temperatures.ipynb", "exec"), names)
        self.assertGreaterEqual(len(names["hours"]), 24)
        self.assertTrue((self.folder / "temperatures.png").read_bytes().startswith(b"\x89PNG"))


@needs_hub
class TestWheel(unittest.TestCase):
    def test_a_wheel_is_installed_into_an_empty_place_and_used(self):
        try:
            import setuptools
        except ImportError:
            self.skipTest("NOT RUN: setuptools is missing")
        if int(setuptools.__version__.partition(".")[0]) < 70:
            self.skipTest("NOT RUN: this setuptools builds no wheels")
        with tempfile.TemporaryDirectory() as folder, HubProcess() as hub:
            place = Path(folder)
            source = place / "source"
            # A build leaves files beside the sources.
            subprocess.run(["cp", "-r", PACKAGE, source], check=True)
            pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
            build = ["wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", place, source]
            subprocess.run([*pip, *build], check=True)
            subprocess.run(
                [sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True
            )
            python = place / "venv/bin/python"
            wheel = next(place.glob("*.whl"))
            subprocess.run([*pip, "--python", python, "install", wheel], check=True)
            program = (
                "import sealane, sealane.client, importlib.resources as r\n"
                "assert r.files('sealane').joinpath('py.typed').is_file()\n"
                f"with sealane.Client({hub.address!r}) as client:\n"
                "    print(client.publish('a', {'n': 1}).offset, sealane.__file__)\n"
            )
            environment = {key: os.environ[key] for key in os.environ if key != "PYTHONPATH"}
            said = subprocess.run(
                [python, "-X", "dev", "-W", "error", "-c", program],
                env=environment,
                cwd=folder,
                check=True,
                capture_output=True,
                text=True,
            ).stdout
            self.assertTrue(said.startswith("0 ") and str(place / "venv") in said, said)


if __name__ == "__main__":
    unittest.main()
