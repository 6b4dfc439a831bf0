#!/usr/bin/env python3
"""Reads and fetches models from servers on this machine (server.py), sound and faulty ones: remote_reads.py POISE EXAMPLES

Results are compared with those of the same files on the disk; digests are Python's hashlib's.
"""
import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from server import COMMIT, Server  # noqa: E402

POISE, EXAMPLES = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
TOKEN = "hf_secret"
REPOSITORY = "org/nano"


class RemoteReads(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.served = self.folder / "served"
        shutil.copytree(EXAMPLES / "nano-mistral", self.served / REPOSITORY)
        self.other = Server(self.served)
        self.server = Server(self.served, self.other)
        self.where = self.folder / "where"
        self.where.mkdir()
        for server in (self.server, self.other):
            self.stack.callback(server.server_close)
            self.stack.callback(server.shutdown)
        self.addCleanup(self.stack.close)

    def poise(self, *arguments, code=0, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment.update(
            HF_ENDPOINT=self.server.url, HF_TOKEN=TOKEN, HF_HOME=str(self.folder / "home"), NO_COLOR="1", **variables
        )
        done = subprocess.run([POISE, *arguments], cwd=self.where, env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def file(self, fault, name=f"{REPOSITORY}/model.safetensors"):
        return f"{self.server.url}/files/{fault}/{name}"

    def hub(self, rest=""):
        return f"hf://{REPOSITORY}{rest}"

    def assert_fails(self, fault, text):
        self.assertIn(text, self.poise("hash", self.file(fault), code=1))

    # Reads of sound servers.

    def test_results_are_those_of_the_file(self):
        local = self.served / REPOSITORY / "model.safetensors"
        for fault in ("none", "whole", "cut-once", "busy", "away"):
            self.assertEqual(self.poise("hash", self.file(fault)), self.poise("hash", local), fault)

    def test_a_header_needs_one_request(self):
        self.poise("inspect", self.file("none"))
        self.assertEqual(len(self.server.seen), 1)

    def test_a_repository_is_a_directory(self):
        local = self.served / REPOSITORY
        self.assertEqual(self.poise("hash", self.hub()), self.poise("hash", local))
        self.assertEqual(self.poise("hash", self.hub("@main/model.safetensors")), self.poise("hash", self.hub()))
        name = "model.embed_tokens.weight"
        shown = [self.poise("show", place, name, "--slice", "0:2,:4") for place in (self.hub(), local)]
        self.assertEqual(*(text[text.index("[[") :] for text in shown))

    def test_headers_of_a_repository_need_a_request_a_file(self):
        self.poise("verify", "--headers", self.hub())
        # The listing, config.json, the tokenizer, README.md and the weights.
        self.assertLessEqual(len(self.server.seen), 5, [path for path, _ in self.server.seen])

    def test_headers_of_thirty_shards_need_a_request_a_shard(self):
        self.poise("convert", self.served / REPOSITORY, "-o", "sharded/", "--shard-size", "80KB")
        shutil.move(self.where / "sharded", self.served / "org" / "sharded")
        shards = len(list((self.served / "org" / "sharded").glob("*.safetensors")))
        self.assertGreater(shards, 10)
        self.server.delay = 0.05  # otherwise a busy machine may end each request before it sends the next one
        shown = self.poise("inspect", "hf://org/sharded")
        self.assertLessEqual(len(self.server.seen), shards + 6)
        self.assertEqual(
            shown.splitlines()[1:], self.poise("inspect", self.served / "org" / "sharded").splitlines()[1:]
        )
        self.assertGreater(self.server.most_at_once, 1)

    def test_convert_streams(self):
        self.poise("convert", self.hub(), "-o", "remote.gguf", "--quantize", "q8_0")
        self.poise("convert", self.served / REPOSITORY, "-o", "local.gguf", "--quantize", "q8_0")
        self.assertEqual(self.poise("hash", "remote.gguf"), self.poise("hash", "local.gguf"))
        self.assertEqual({path.name for path in self.where.iterdir()}, {"remote.gguf", "local.gguf"})

    # Faults.

    def test_faults_are_errors(self):
        big = self.served / "big.bin"
        big.write_bytes(bytes(70 << 20))
        self.assert_fails("circle", "redirects more than 10 times")
        self.assert_fails("range", "expected bytes")
        self.assert_fails("length", "Content-Length")
        self.assert_fails("more", "more bytes than it has announced")
        self.assert_fails("changes", "has changed since it was opened")
        self.assert_fails("total", "has changed since it was opened")
        self.assert_fails("closed", "asks to wait 3600 seconds")
        self.assert_fails("forbidden", "HF_TOKEN")
        self.assertIn("no such file", self.poise("inspect", self.file("none", "absent.gguf"), code=1))
        (self.served / "empty.bin").write_bytes(b"")
        self.assertIn("the file is empty", self.poise("inspect", self.file("none", "empty.bin"), code=1))
        self.assertIn("curl -LO URL", self.poise("inspect", self.file("whole", "big.bin"), code=1))

    def assert_error_or(self, expected, what, *arguments):
        """Expects the output of a sound server, or an error message."""
        environment = {**os.environ, "HF_ENDPOINT": self.server.url, "HF_HOME": str(self.folder / "home")}
        done = subprocess.run(
            [POISE, *arguments], cwd=self.where, env=environment, capture_output=True, text=True, timeout=60
        )
        self.assertIn(done.returncode, (0, 1), f"{what}: {done.stderr}")
        self.assertNotIn("bug in Poise", done.stderr, what)
        if done.returncode == 0:
            self.assertEqual(done.stdout, expected, what)
        return done.returncode

    def test_wrong_headers_are_errors(self):
        expected = self.poise("hash", self.served / REPOSITORY / "model.safetensors")
        # Most of the time passes before further attempts.
        with concurrent.futures.ThreadPoolExecutor(20) as runs:
            errors = sum(
                runs.map(lambda i: self.assert_error_or(expected, i, "hash", self.file(f"garbled-{i}")), range(100))
            )
        self.assertGreater(errors, 60)

    def test_wrong_listings_are_errors(self):
        expected = self.poise("hash", self.served / REPOSITORY)
        errors = 0
        for i in range(150):
            dice = random.Random(i)

            def garble(body):
                changed = bytearray(body)
                if i % 3 == 0:
                    return bytes(changed[: dice.randrange(len(changed))])
                for _ in range(i % 3):
                    changed[dice.randrange(len(changed))] = dice.choice(b'\0\xff"[]{},:-0xe')
                return bytes(changed)

            self.server.garble_listing = garble
            errors += self.assert_error_or(expected, i, "hash", self.hub())
        self.assertGreater(errors, 50)

    def test_other_schemes_are_refused(self):
        for url in (
            "file:///etc/passwd",
            "ftp://127.0.0.1/x",
            "http://user:hunter2@127.0.0.1/x",
            "hf://name",
            "hf://a/../b",
        ):
            self.assertNotIn("hunter2", self.poise("inspect", url, code=2))
        self.poise("inspect", "hf://org/nano@../../x", code=2)

    def test_the_token_goes_to_the_endpoint_only(self):
        self.poise("hash", self.file("away"))
        self.assertTrue(all(headers["Authorization"] == f"Bearer {TOKEN}" for _, headers in self.server.seen))
        self.assertTrue(self.other.seen)
        self.assertFalse(any("Authorization" in headers for _, headers in self.other.seen))

    def test_a_repository_has_no_digest_of_its_own(self):
        self.assertIn("one file", self.poise("verify", self.hub(), "--sha256", "0" * 64, code=2))

    def test_a_file_names_no_url(self):
        (self.where / "recipe.yaml").write_text(
            f"merge_method: linear\nmodels:\n- model: {self.file('none')}\n  parameters: {{weight: 1}}\n"
        )
        self.poise("merge", "recipe.yaml", "-o", "out.safetensors", code=1)
        self.assertEqual(self.server.seen, [])

    # Fetches.

    def test_fetch_writes_plain_files(self):
        self.poise("fetch", self.hub(), "-o", "plain")
        for path in (self.served / REPOSITORY).iterdir():
            self.assertEqual((self.where / "plain" / path.name).read_bytes(), path.read_bytes())
        self.assertEqual(len(list((self.where / "plain").iterdir())), len(list((self.served / REPOSITORY).iterdir())))
        before = len(self.server.seen)
        self.poise("fetch", self.hub(), "-o", "plain")
        self.assertEqual(len(self.server.seen), before + 1)  # all files are there
        (self.where / "plain" / "config.json").write_text("{}")
        self.assertIn("another content", self.poise("fetch", self.hub(), "-o", "plain", code=2))
        self.poise("fetch", self.hub(), "-o", "plain", "--force", "--only", "*.json")

    def test_fetch_writes_the_cache(self):
        self.poise("fetch", self.hub())
        repository = self.folder / "home" / "hub" / "models--org--nano"
        self.assertEqual((repository / "refs" / "main").read_text(), COMMIT)
        for path in (self.served / REPOSITORY).iterdir():
            link = repository / "snapshots" / COMMIT / path.name
            self.assertTrue(link.is_symlink())
            self.assertEqual(link.read_bytes(), path.read_bytes())
        weights = hashlib.sha256((self.served / REPOSITORY / "model.safetensors").read_bytes()).hexdigest()
        self.assertTrue((repository / "blobs" / weights).is_file())
        self.poise("verify", REPOSITORY)

    def test_fetch_gets_equal_files_once(self):
        names = [f"folder{i}/{kind}.py" for i in range(6) for kind in ("empty", "same")]
        for name in names:
            path = self.served / REPOSITORY / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("" if "empty" in name else "same" * 1000)
        self.server.delay = 0.1
        report = json.loads(self.poise("fetch", self.hub(), "--parallel", "8", "--only", "*.py", "--json"))
        self.assertEqual((report["files"], report["files_kept"], report["bytes"]), (12, 0, 4000))
        snapshot = self.folder / "home" / "hub" / "models--org--nano" / "snapshots" / COMMIT
        for name in names:
            self.assertEqual((snapshot / name).read_bytes(), (self.served / REPOSITORY / name).read_bytes())
        self.assertEqual(len({(snapshot / name).resolve() for name in names}), 2)
        report = json.loads(self.poise("fetch", self.hub(), "--only", "*.py", "--json"))
        self.assertEqual((report["files"], report["files_kept"], report["bytes_kept"]), (12, 12, 4000))

    def test_fetch_goes_on(self):
        data = (self.served / REPOSITORY / "model.safetensors").read_bytes()
        (self.where / "plain").mkdir()
        (self.where / "plain" / "model.safetensors.incomplete").write_bytes(data[:1000000])
        self.poise("fetch", self.hub("/model.safetensors"), "-o", "plain")
        self.assertEqual((self.where / "plain" / "model.safetensors").read_bytes(), data)
        self.assertEqual(self.server.seen[-1][1]["Range"], f"bytes=1000000-{len(data) - 1}")

    def test_fetch_refuses_wrong_bytes(self):
        self.server.damaged.add("model.safetensors")
        self.assertIn("digest", self.poise("fetch", self.hub(), "-o", "plain", code=1))
        self.assertFalse((self.where / "plain" / "model.safetensors").exists())

    def test_fetch_refuses_hostile_names(self):
        for name in ("../out", "/tmp/out", "a/../../out", "a//b", "a\\b", ".", "a\nb", ""):
            self.server.extra_siblings = [{"rfilename": name, "size": 1, "blobId": "0" * 40}]
            self.poise("fetch", self.hub(), "-o", "plain", code=1)
            self.assertFalse((self.where / "plain").exists(), name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
