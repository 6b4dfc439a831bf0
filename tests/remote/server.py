"""A server on this machine with the API of the Hugging Face Hub, and with faults that a path names.

/files/FAULT/NAME serves a file of the folder. Faults: none, whole (sends no ranges), cut (drops each connection after
half of the body), cut-once, circle, away (redirects to another server), changes (another ETag after the first request),
range (answers with another range), length (Content-Length and Content-Range disagree), total (another size after the
first request), more (sends more than announced), busy (429 twice, then the file), closed (503 for an hour), forbidden,
garbled-N (wrong values of headers; N chooses them).
"""
import hashlib
import json
import pathlib
import random
import re
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
# Values of headers that no sound server sends.
WRONG = {
    "Content-Length": ("-1", "99999999999999999999999", "0x10", "", "1e3", "7, 7", "18446744073709551615"),
    "Content-Range": ("bytes 0-", "bytes 5-1/9", "bytes */*", "0-9/10", "bytes 0-18446744073709551615/3", "x" * 70_000)
    + ("bytes 18446744073709551615-0/1", "bytes 0-9/99999999999999999999", "bytes 0-9/*", "lines 0-9/10", "\x7f"),
    "ETag": ("", '"', "x" * 70_000, "\x01\x02", 'W/"weak"'),
    "Content-Encoding": ("gzip", "identity", "br, gzip", ""),
    "Transfer-Encoding": ("chunked", "gzip", "x"),
    "Location": ("file:///etc/passwd", "gopher://127.0.0.1/", "", "//", "http://", "http://[::1", "\x01", "x" * 70_000),
    "Retry-After": ("-5", "nan", "1e400", "Fri, 99 Foo 2026"),
}


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder, other=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = pathlib.Path(folder)
        self.other = other
        self.seen = []  # (path, headers) of each request
        self.lock = threading.Lock()
        self.extra_siblings = []
        self.fault = "none"  # of the files of repositories
        self.damaged = set()
        self.at_once, self.most_at_once = 0, 0
        self.delay = 0  # seconds before an answer
        self.garble_listing = None  # changes the text of a listing
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request, client_address):
        pass  # a client may go away

    def count(self, path):
        return sum(1 for seen, _ in self.seen if seen == path)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        names.setdefault("Content-Length", str(len(body)))
        for name, value in names.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.partition("?")[0]
        with self.server.lock:
            self.server.seen.append((path, dict(self.headers)))
            self.server.at_once += 1
            self.server.most_at_once = max(self.server.most_at_once, self.server.at_once)
        time.sleep(self.server.delay)
        self.answer(path)
        with self.server.lock:
            self.server.at_once -= 1

    def answer(self, path):
        if match := re.fullmatch(r"/files/([a-z0-9-]+)/(.*)", path):
            return self.send_file(match[1], self.server.folder / match[2], path)
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.*)", path):
            return self.send_listing(match[1])
        if match := re.fullmatch(rf"/([^/]+/[^/]+)/resolve/{COMMIT}/(.*)", path):
            name = urllib.parse.unquote(match[2])
            return self.send_file(self.server.fault, self.server.folder / match[1] / name, path)
        self.reply(404)

    def send_listing(self, repository):
        folder = self.server.folder / repository
        if not folder.is_dir():
            return self.reply(404, X_Error_Message="Repository not found")
        siblings = []
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            data = path.read_bytes()
            entry = {"rfilename": str(path.relative_to(folder)), "size": len(data)}
            entry["blobId"] = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
            if len(data) > 100_000:
                entry["lfs"] = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
            siblings.append(entry)
        body = json.dumps({"sha": COMMIT, "siblings": siblings + self.server.extra_siblings}).encode()
        if self.server.garble_listing is not None:
            body = self.server.garble_listing(body)
        self.reply(200, body, Content_Type="application/json")

    def send_file(self, fault, path, asked):
        if not path.is_file():
            return self.reply(404)
        data = path.read_bytes()
        if path.name in self.server.damaged:
            data = bytes([data[0] ^ 1]) + data[1:]
        etag = '"%s"' % hashlib.sha256(data).hexdigest()
        earlier = self.server.count(asked)
        if fault == "circle":
            return self.reply(302, Location=self.path)
        if fault == "away":
            return self.reply(
                302, Location=f"{self.server.other.url}/files/none/{path.relative_to(self.server.folder)}"
            )
        if fault == "busy" and earlier <= 2:
            return self.reply(429, Retry_After="0")
        if fault == "closed":
            return self.reply(503, Retry_After="3600")
        if fault == "forbidden":
            return self.reply(403)
        if fault == "changes" and earlier > 1:
            if "If-Match" in self.headers:
                return self.reply(412)
            etag = '"another"'
        asked_range = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if fault == "whole" or not asked_range:
            return self.reply(200, data, ETag=etag)
        begin, end = int(asked_range[1]), min(int(asked_range[2]) + 1, len(data))
        if begin >= len(data):
            return self.reply(416, b"<p>a page for people</p>", Content_Range=f"bytes */{len(data)}")
        body = data[begin:end]
        stated, total, length = begin, len(data), len(body)
        if fault == "range":
            stated += 1
            body = body[1:]
            length -= 1
        if fault == "length":
            length -= 1
        if fault == "total" and earlier > 1:
            total += 1
        if fault in ("cut", "cut-once") and (fault == "cut" or earlier == 1):
            body = body[: len(body) // 2]
            self.close_connection = True
        if fault == "more":
            body += b"more"
        headers = {"ETag": etag, "Content-Range": f"bytes {stated}-{end - 1}/{total}", "Content-Length": str(length)}
        if fault.startswith("garbled"):
            dice = random.Random(fault)
            for name in dice.sample(sorted(WRONG), dice.choice((1, 1, 2))):
                headers[name] = dice.choice(WRONG[name])
            if dice.random() < 0.2:
                del headers["Content-Range"]
            self.close_connection = True
            status = dice.choice((206, 206, 206, 200, 204, 302, 304, 307, 416, 299))
            return self.reply(status, body[: dice.choice((0, 1, len(body)))], **headers)
        if fault == "more":
            del headers["Content-Length"]
            headers["Transfer-Encoding"] = "chunked"
            body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
            self.send_response(206)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
            return None
        return self.reply(206, body, **headers)
