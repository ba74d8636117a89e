"""The reader of vaults against good ones and bad ones."""

import os
import shutil
import tempfile
import unittest
from pathlib import Path

from blake3 import blake3
from cryptography.hazmat.primitives.asymmetric import ed25519
from sealane import Refused
from sealane.vault import Folder, Vault, chosen, restore
from vault_writer import Writer, counted, entry, page, printed_code, varint
from vectors import FOLDER, cases, refusal

TIME = 1_700_000_000_123_456_789


def file(path: bytes, pieces: list[bytes], size: int, extensions: bytes = b"") -> bytes:
    rest = varint(size) + varint(len(pieces)) + b"".join(pieces)
    return entry(path, 1, rest, 0o640, extensions)


def piece(kind: int, length: int, ident: bytes = b"") -> bytes:
    return bytes([kind]) + varint(length) + ident


class TestVectors(unittest.TestCase):
    def test_vaults_of_version_1_read_as_they_were_written(self):
        for name in ("vault", "vault2", "vault3", "vault4"):
            with self.subTest(name):
                self.reads(name)

    def test_a_writers_snapshot_is_not_taken_for_the_owners(self):
        told = cases("vault/vault.json")
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(FOLDER / "vault" / "store", folder, dirs_exist_ok=True)
            (Path(folder) / "snapshots" / "0000000005").unlink()
            vault = Vault(Folder(folder), passphrase=told["passphrase"].encode())
            newest = vault.snapshots()[-1]
            self.assertEqual((newest.number, newest.is_owners), (4, False))
            self.assertEqual(chosen(vault), chosen(vault, 3))
            self.assertNotEqual(chosen(vault), chosen(vault, 4))

    def changed(self, change) -> Vault:
        """The vault whose main key was changed twice, after `change` of its folder."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        shutil.copytree(FOLDER / "vault3" / "store", folder.name, dirs_exist_ok=True)
        change(Path(folder.name))
        passphrase = cases("vault3/vault.json")["passphrase"].encode()
        return Vault(Folder(folder.name), passphrase=passphrase)

    def test_a_change_of_the_main_key_that_was_hidden_is_refused(self):
        for name in ("rotations/001", "rotations/002"):
            code = refusal(lambda: self.changed(lambda root: (root / name).unlink()))
            self.assertEqual(code, "SL-VAULT-08", name)
        whole = self.changed(lambda root: None)
        self.assertEqual((len(whole.generations), whole.foreign), (3, {}))
        last = whole.owners.hand_overs[-1][0]

        def lists(root: Path) -> None:
            for path in (root / "roster").iterdir():
                path.unlink()

        # Without any list the chain tells which links hand over.
        self.assertEqual(len(self.changed(lists).generations), 3)

        def hides(root: Path) -> None:
            lists(root)
            (root / f"snapshots/{last:010}").unlink()

        self.assertEqual(refusal(lambda: self.changed(hides)), "SL-VAULT-08")

    def test_what_an_old_main_key_signed_later_is_no_link(self):
        whole = self.changed(lambda root: None)
        (first, _), (second, _) = whole.owners.hand_overs
        names = [f"snapshots/{number:010}" for number in (1, 2, first, second)]

        def exchange(root: Path) -> None:
            # A link that its owner signed truly, and that the hand-over does not name there.
            data = bytearray((root / names[1]).read_bytes())
            data[24:32] = (1).to_bytes(8, "little")
            keys = whole.generations[0]
            sealed = data[: len(data) - 64]
            signing = ed25519.Ed25519PrivateKey.from_private_bytes(keys.key("signing"))
            signature = signing.sign(b"sealane vault v1 signature" + bytes(sealed))
            (root / names[0]).write_bytes(bytes(sealed) + signature)

        vault = self.changed(exchange)
        numbers = [link.number for link in vault.snapshots()]
        self.assertNotIn(1, numbers)
        self.assertEqual(vault.foreign[names[0]], "SL-VAULT-09")
        self.assertEqual(numbers[0], 2)

    def reads(self, name: str) -> None:
        told = cases(f"{name}/vault.json")
        secrets = ({"passphrase": told["passphrase"].encode()}, {"code": told["recovery"]})
        for secret in secrets:
            vault = Vault(Folder(FOLDER / name / "store"), **secret)
            numbers = [link.number for link in vault.snapshots() if not link.is_prune]
            self.assertEqual(numbers, [snapshot["number"] for snapshot in told["snapshots"]])
            for snapshot in told["snapshots"]:
                entries = chosen(vault, snapshot["number"])
                self.assertEqual(len(entries), len(snapshot["entries"]))
                for found, told_entry in zip(entries, snapshot["entries"], strict=True):
                    self.check(vault, found, told_entry)

    def check(self, vault, found, told):
        self.assertEqual(found.path.hex(), told["path"])
        self.assertEqual(f"{found.mode:04o}", told["mode"])
        self.assertEqual(found.modified_ns, told["mtime_ns"])
        self.assertEqual((found.same_as or b"").hex(), told.get("same_as", ""))
        kinds = ("folder", "file", "link", "character", "block", "fifo")
        self.assertEqual(kinds[found.kind], told["kind"])
        self.assertEqual(list(found.device), told.get("device", [0, 0]))
        attributes = {name.decode(): value.hex() for name, value in found.attributes.items()}
        self.assertEqual(attributes, told.get("attributes", {}))
        if told["kind"] == "file":
            parts = [part or bytes(length) for length, part in vault.content(found)]
            content = b"".join(parts)
            self.assertEqual((found.size, len(content)), (told["size"], told["size"]))
            self.assertEqual(blake3(content).hexdigest(), told["blake3"])
        if told["kind"] == "link":
            self.assertEqual(found.target.hex(), told["target"])


class TestVault(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)
        self.writer = Writer(self.root / "vault")

    def vault(self) -> Vault:
        return Vault(Folder(self.root / "vault"), b"passphrase")

    def keep(self, *entries: bytes) -> None:
        """A pack and a snapshot of one page."""
        ident = self.writer.chunk(page(list(entries)), kind=1)
        self.writer.pack()
        self.writer.snapshot([ident])

    def refused(self) -> str | None:
        return refusal(lambda: restore(vault := self.vault(), chosen(vault), self.root / "out"))

    def test_everything_that_an_entry_can_be_comes_back(self):
        text, noise = b"the way of a message\n" * 1000, os.urandom(5000)
        stored, lz4 = self.writer.chunk(noise, how=0), self.writer.chunk(text, how=1)
        listed = varint(2) + piece(0, len(noise), stored) + piece(1, 1 << 20)
        ident = self.writer.chunk(listed, kind=2, how=0)
        pieces = [piece(2, len(noise) + (1 << 20), ident), piece(0, len(text), lz4)]
        size = len(noise) + (1 << 20) + len(text)
        same = varint(1) + counted(b"a/sparse")
        unknown = varint(9) + counted(b"later")
        self.keep(
            entry(b"a", 0, b"", 0o750),
            file(b"a/empty", [], 0),
            file(b"a/sparse", pieces, size),
            file(b"a/z same", pieces, size, same + unknown),
            entry(b"a-link", 2, counted(b"../outside")),
            file(b"\xff not text", [piece(0, len(text), lz4)], len(text)),
        )
        for secret in ({"passphrase": b"passphrase"}, {"code": printed_code().lower()}):
            vault = Vault(Folder(self.root / "vault"), **secret)
            for entries in (chosen(vault), vault.from_packs()):
                out = Path(tempfile.mkdtemp(dir=self.root))
                self.assertEqual(restore(vault, entries, out), {})
                self.check(out, noise + bytes(1 << 20) + text, text)

    def check(self, out: Path, whole: bytes, text: bytes):
        found = os.stat(out / "a/sparse")
        self.assertEqual((out / "a/sparse").read_bytes(), whole)
        self.assertEqual((found.st_mtime_ns, found.st_mode & 0o7777), (TIME, 0o640))
        self.assertLess(found.st_blocks * 512, 1 << 20)
        self.assertEqual(os.stat(out / "a/z same").st_ino, found.st_ino)
        self.assertEqual((out / "a/empty").read_bytes(), b"")
        self.assertEqual(os.readlink(out / "a-link"), "../outside")
        self.assertEqual(os.lstat(out / "a-link").st_mtime_ns, TIME)
        self.assertEqual(Path(os.fsdecode(os.fsencode(out) + b"/\xff not text")).read_bytes(), text)
        folder = os.stat(out / "a")
        self.assertEqual((folder.st_mtime_ns, folder.st_mode & 0o7777), (TIME, 0o750))

    def test_a_path_that_leaves_the_target_is_refused(self):
        for path in (b"..", b"../x", b"a/../x", b"/x", b"a//x", b"", b"a\0", b"./x", b"x" * 4097):
            with self.subTest(path=path):
                self.setUp()
                self.keep(file(path, [], 0))
                self.assertEqual(self.refused(), "SL-VAULT-06")

    def test_paths_out_of_order_or_twice_are_refused(self):
        for paths in ((b"b", b"a"), (b"a", b"a"), (b"a-b", b"a", b"a/b")):
            self.setUp()
            self.keep(*(entry(path, 0, b"") for path in paths))
            self.assertEqual(self.refused(), "SL-VAULT-06")

    def test_every_flipped_byte_of_every_object_is_refused_or_changes_nothing(self):
        text = b"text" * 100
        self.keep(file(b"a", [piece(0, len(text), self.writer.chunk(text))], len(text)))
        root = self.root / "vault"
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            data = path.read_bytes()
            for at in range(len(data)):
                path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
                try:
                    vault = self.vault()
                    content = [part for _, part in vault.content(chosen(vault)[0])]
                except Refused:
                    continue
                # The other slot, and the hash in a pack's name, are not needed to read.
                self.assertEqual(content, [text], f"{path} {at}")
            path.write_bytes(data)

    def test_pipes_and_words_of_users_come_back_and_devices_are_named(self):
        def attributes(*rows: tuple[bytes, bytes]) -> bytes:
            body = b"".join(counted(name) + counted(value) for name, value in rows)
            return varint(2) + counted(varint(len(rows)) + body)

        words = attributes((b"trusted.a", b"1"), (b"user.a", b"2"))
        device = entry(b"null", 3, varint(1) + varint(3))
        self.keep(file(b"a", [], 0, words), device, entry(b"pipe", 5, b"", 0o620))
        vault = self.vault()
        self.assertEqual(restore(vault, chosen(vault), self.root / "out"), {b"null": "NoDevice"})
        self.assertEqual(os.listxattr(self.root / "out/a"), ["user.a"])
        self.assertEqual((self.root / "out/pipe").lstat().st_mode, 0o010620)
        a, b = (b"a", b""), (b"b", b"")
        for rows in ((b, a), (a, a), ((b"", b""),), ((b"\0", b""),)):
            self.writer.chunk(b"other", how=0)
            self.keep(file(b"a", [], 0, attributes(*rows)))
            self.assertEqual(refusal(lambda: chosen(self.vault())), "SL-VAULT-06", rows)

    def test_content_that_is_another_or_too_long_is_refused(self):
        wrong = self.writer.chunk(b"another", ident=b"i" * 24)
        short = self.writer.chunk(b"short")
        self.keep(file(b"a", [piece(0, 7, wrong)], 7), file(b"b", [piece(0, 6, short)], 6),
                  file(b"c", [piece(0, 5, b"n" * 24)], 5), file(b"d", [piece(0, 5, short)], 5))  # fmt: skip
        vault = self.vault()
        failed = restore(vault, chosen(vault), self.root / "out")
        codes = {b"a": "SL-VAULT-08", b"b": "SL-VAULT-06", b"c": "SL-VAULT-03"}
        self.assertEqual(failed, codes)
        self.assertEqual(os.listdir(self.root / "out"), ["d"])

    def test_a_link_that_is_gone_or_changed_is_named_and_the_others_are_read(self):
        ident = self.writer.chunk(page([entry(b"a", 0, b"")]), kind=1)
        self.writer.pack()
        hashes = []
        for _ in range(3):
            self.writer.snapshot([ident])
            hashes.append(self.writer.previous)
        self.assertEqual(self.chain(), ([1, 2, 3], {}))
        second = self.root / "vault/snapshots/0000000002"
        kept = second.read_bytes()
        second.unlink()
        self.assertEqual(self.chain(), ([1, 3], {"snapshots/0000000002": "SL-VAULT-03"}))
        second.write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        self.assertEqual(self.chain(), ([1, 3], {"snapshots/0000000002": "SL-VAULT-09"}))
        second.unlink()
        self.writer.snapshot([], what=1, removed=((2, hashes[1]),))
        self.assertEqual(self.chain(), ([1, 3, 4], {}))
        self.writer.snapshot([], what=1, removed=((2, bytes(32)),))
        self.assertIn("snapshots/0000000002", self.chain()[1])
        (self.root / "vault/snapshots/9999999999").write_bytes(kept)
        self.assertEqual(self.chain()[1]["snapshots/9999999999"], "SL-VAULT-06")

    def chain(self) -> tuple[list[int], dict[str, str]]:
        vault = self.vault()
        return [link.number for link in vault.snapshots()], vault.foreign

    def test_a_wrong_secret_and_a_mistyped_code_are_refused(self):
        store = Folder(self.root / "vault")
        self.assertEqual(refusal(lambda: Vault(store, b"passphrasf")), "SL-VAULT-08")
        code = printed_code()
        wrong = code[:-1] + ("1" if code[-1] != "1" else "2")
        self.assertEqual(refusal(lambda: Vault(store, code=wrong)), "SL-VAULT-08")
        self.assertEqual(refusal(lambda: Vault(store, code=code[:-1])), "SL-VAULT-06")
