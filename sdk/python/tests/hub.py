"""A real hub for tests: `sealane up` in a folder of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
#: The machine that checks may be slow.
PATIENCE = 30.0


def binary() -> Path | None:
    """The program: that of SEALANE_BINARY, else the one that was built last."""
    given = os.environ.get("SEALANE_BINARY")
    if given:
        return Path(given)
    built = [ROOT / "target" / profile / "sealane" for profile in ("debug", "ship", "release")]
    built = [path for path in built if path.is_file()]
    return max(built, key=lambda path: path.stat().st_mtime, default=None)


def needs_hub(case):
    """A test that is skipped where nothing was built."""
    found = binary() is not None
    return unittest.skipUnless(found, "NOT RUN: target/debug/sealane is missing: cargo build")(case)


class HubProcess:
    """A hub that can be killed, frozen and started again, on the same folder and port."""

    def __init__(self, *flags: str, tokens: bool = False, tls: bool = False) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="sealane-")
        self.folder = Path(self._place.name)
        self.data = self.folder / "data"
        self._flags = list(flags)
        self._process: subprocess.Popen | None = None
        self._log = open(self.folder / "log", "ab")
        self.address = "127.0.0.1:0"
        self.token: str | None = None
        self.ca: Path | None = None
        if tls:
            self._make_certificates()
        if tokens:
            patterns = ("--read", "--publish", "--manage")
            rights = [word for one in patterns for word in (one, "**", one, "dead/**")]
            self.token = self.make_token("all", *rights, "--observe")
        self.start()

    def __enter__(self) -> HubProcess:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        return f"http{'s' if self.ca else ''}://{self.address}"

    def options(self) -> dict:
        """How a client reaches it."""
        return {"address": self.url, "token": self.token or "", "ca": self.ca}

    def start(self) -> None:
        words = ["up", "--data", self.data, "--listen", self.address, "--json", *self._flags]
        environment = {**os.environ, "SEALANE_LOG": "warn"}
        self._process = subprocess.Popen(
            [binary(), *words], stdout=subprocess.PIPE, stderr=self._log, env=environment
        )
        self.address = json.loads(self._process.stdout.readline())["address"]

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._gone()

    def stop(self) -> None:
        self.signal(signal.SIGTERM)
        self._gone()

    def freeze(self) -> None:
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def _gone(self) -> None:
        self._process.wait(PATIENCE)
        self._process.stdout.close()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.thaw()
            self.kill()
        self._log.close()
        self._place.cleanup()

    def command(self, *words: str) -> str:
        """What the command line says."""
        done = subprocess.run([binary(), *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout

    def make_token(self, name: str, *rights: str) -> str:
        target = self.folder / f"token-{name}"
        self.command("token", "new", name, "--data", self.data, "--to", target, *rights)
        if self._process is not None:
            self._takes_hold()
        return target.read_text().strip()

    def revoke(self, name: str) -> None:
        self.command("token", "revoke", name, "--data", self.data)

    def _takes_hold(self) -> None:
        # The node looks at the file at once.
        self.signal(signal.SIGHUP)
        time.sleep(0.05)

    def _make_certificates(self) -> None:
        texts = []
        for number in (1, 2):
            folder = self.folder / f"tls-{number}"
            self.command("cert", "self-signed", "127.0.0.1", "--to", folder)
            texts.append((folder / "cert.pem").read_text())
        self.ca = self.folder / "ca.pem"
        self.ca.write_text("".join(texts))
        first = self.folder / "tls-1"
        self._flags += ["--tls-cert", str(first / "cert.pem"), "--tls-key", str(first / "key.pem")]

    def renew_certificate(self) -> None:
        for name in ("key.pem", "cert.pem"):
            text = (self.folder / "tls-2" / name).read_text()
            (self.folder / "tls-1" / name).write_text(text)
        self.signal(signal.SIGHUP)

    def http(self, method: str, path: str, body=None, headers=None) -> tuple[int, object]:
        """A request by hand: its status, and the value of the reply."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        if self.token and "authorization" not in headers:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        context = None
        if self.ca:
            import ssl

            context = ssl.create_default_context(cafile=self.ca)
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as reply:
                if reply.headers["Content-Type"].startswith("text/event-stream"):
                    return reply.status, None
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.loads(refused.read() or b"null")
