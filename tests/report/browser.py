"""A headless Chromium, driven through a pipe by its DevTools protocol.

Needs the program `chromium` and nothing but Python's standard library.
"""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

TIMEOUT = 60  # seconds for an answer


def find_chromium():
    """Returns the program, or None."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


class Page:
    """A page of its own, with what it logs and asks for."""

    def __init__(self, browser, session):
        self.browser, self.session = browser, session
        self.errors, self.requests = [], []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method, **parameters):
        return self.browser.send(method, parameters, self)

    def note(self, method, parameters):
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.errors.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.errors.append(str(parameters["args"]))
        elif method == "Page.javascriptDialogOpening":
            self.errors.append("a dialog opened: " + parameters["message"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def show(self, url, width, height, dark=False, media="screen"):
        """Loads the page at that size and waits until its script has drawn it."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.send("Page.navigate", url=url)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def run(self, expression):
        """Returns the value of an expression, which may be a promise."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait(self, expression, seconds=30):
        end = time.monotonic() + seconds
        while not self.run(f"Boolean({expression})"):
            if time.monotonic() > end:
                raise AssertionError(f"not true after {seconds} s: {expression}; errors: {self.errors}")
            time.sleep(0.05)

    def press(self, key, code=None, text=None):
        """Presses and releases a key as a keyboard does."""
        keys = {
            "Enter": (13, "\r"),
            "Tab": (9, None),
            "Escape": (27, None),
            "ArrowRight": (39, None),
            "ArrowLeft": (37, None),
        }
        number, letters = keys[key]
        down = dict(key=key, code=code or key, windowsVirtualKeyCode=number)
        self.send("Input.dispatchKeyEvent", type="keyDown", **down, **({"text": letters} if letters else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **down)

    def click(self, selector):
        """Clicks with the mouse in the middle of an element, once it has stopped moving: sections that scroll into view
        are laid out only then."""
        place = (
            f"(async () => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " for (let i = 0; i < 3; ++i) await new Promise((done) => requestAnimationFrame(done));"
            " const b = e.getBoundingClientRect(); const [x, y] = [b.x + b.width / 2, b.y + b.height / 2];"
            " const hit = document.elementFromPoint(x, y); return [x, y, hit !== null && e.contains(hit)]; })()"
        )
        box = self.run(place)
        end = time.monotonic() + 30
        while (next_box := self.run(place)) != box or not box[2]:
            if time.monotonic() > end:
                raise AssertionError(f"{selector} does not come into view: {next_box}")
            box = next_box
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, selector, text):
        """Replaces the text of a field."""
        self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.focus(); e.select(); }})()")
        self.send("Input.insertText", text=text)

    def save_picture(self, path, whole=False):
        clip = {}
        if whole:
            size = self.send("Page.getLayoutMetrics")["cssContentSize"]
            clip = dict(
                clip=dict(x=0, y=0, width=size["width"], height=size["height"], scale=1), captureBeyondViewport=True
            )
        data = self.send("Page.captureScreenshot", format="png", **clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print_pages(self):
        """Returns the page as a PDF file."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])


class Browser:
    """Starts Chromium without a network; `with` ends it."""

    def __init__(self, program):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.to = os.pipe()
        self.answers, from_browser = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        arguments = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
        ]
        arguments += [
            f"--user-data-dir={self.profile.name}",
            "--no-first-run",
            "--disable-background-networking",
            "about:blank",
        ]
        shell = ["sh", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "sh", *arguments]
        self.process = subprocess.Popen(
            shell,
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.pages = b"", 0, {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.send("Browser.close", {})
            self.process.wait(10)
        except Exception:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()

    def open_page(self):
        target = self.send("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.send("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page.__new__(Page)
        self.pages[session] = page
        page.__init__(self, session)
        return page

    def send(self, method, parameters, page=None):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if page is not None:
            message["sessionId"] = page.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        number = self.last
        while True:
            answer = self.read_message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            noted = self.pages.get(answer.get("sessionId"))
            if noted is not None and "method" in answer:
                noted.note(answer["method"], answer.get("params", {}))

    def read_message(self):
        while b"\0" not in self.buffer:
            if not select.select([self.answers], [], [], TIMEOUT)[0]:
                raise AssertionError(f"the browser does not answer for {TIMEOUT} s")
            piece = os.read(self.answers, 1 << 20)
            if not piece:
                raise AssertionError("the browser has ended")
            self.buffer += piece
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)
