"""Drives headless Chromium through its DevTools protocol, over a pipe. Standard library only.

RECON_TEST_CHROMIUM names the browser; otherwise chromium, chromium-browser or google-chrome of the PATH is used.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

TIMEOUT_S = 120


def find():
    """Returns the browser's program, or None."""
    given = os.environ.get("RECON_TEST_CHROMIUM")
    if given:
        return given
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Browser:
    """A browser with one page. Collects what the page reports as errors, and the addresses that it requests."""

    def __init__(self, size=(1280, 900)):
        self.profile = tempfile.TemporaryDirectory(prefix="recon-chromium-")
        to_browser, self.commands = os.pipe()
        self.answers, from_browser = os.pipe()
        # The browser reads commands from file 3 and writes answers to file 4.
        script = f'exec "$@" 3<&{to_browser} 4>&{from_browser}'
        program = [
            find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            "--force-device-scale-factor=1", "--hide-scrollbars", f"--window-size={size[0]},{size[1]}",
            f"--user-data-dir={self.profile.name}", "--remote-debugging-pipe", "about:blank",
        ]
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            ["sh", "-c", script, "sh", *program], pass_fds=(to_browser, from_browser), stdin=subprocess.DEVNULL,
            stdout=self.log, stderr=self.log, start_new_session=True,
        )
        os.close(to_browser)
        os.close(from_browser)
        self.received, self.number = b"", 0
        self.errors, self.requests = [], []
        self.session = None
        pages = []
        started = time.monotonic()
        while not pages:
            if time.monotonic() > started + TIMEOUT_S:
                raise RuntimeError("the browser has no page")
            pages = [t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self.call("Target.attachToTarget", targetId=pages[0]["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=size[0], height=size[1], deviceScaleFactor=1,
                  mobile=False)

    def close(self):
        """Ends the browser with its processes."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.commands)
        os.close(self.answers)
        self.log.close()
        # The browser's processes may still write there.
        shutil.rmtree(self.profile.name, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def message(self):
        """Returns the next message of the browser."""
        limit = time.monotonic() + TIMEOUT_S
        while b"\0" not in self.received:
            if not select.select([self.answers], [], [], max(0, limit - time.monotonic()))[0]:
                raise RuntimeError(f"the browser did not answer in {TIMEOUT_S} s")
            part = os.read(self.answers, 1 << 20)
            if not part:
                self.log.seek(0)
                raise RuntimeError(f"the browser ended: {self.log.read().decode(errors='replace')[-2000:]}")
            self.received += part
        text, self.received = self.received.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        """Calls a method of the protocol and returns its result."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.commands, json.dumps(command).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.notice(message)

    def notice(self, message):
        """Keeps errors and requests."""
        parameters = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                self.errors.append(str(parameters["args"]))
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                self.errors.append(parameters["entry"]["text"])
            case "Network.requestWillBeSent":
                self.requests.append(parameters["request"]["url"])

    def js(self, expression):
        """Returns the value of a JavaScript expression, or of its promise."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition):
        """Waits until a JavaScript expression is true. Returns the seconds."""
        started = time.monotonic()
        while not self.js(condition):
            if time.monotonic() > started + TIMEOUT_S:
                raise RuntimeError(f"never true: {condition}; errors: {self.errors}")
            time.sleep(0.01)
        return time.monotonic() - started

    def open(self, path, fragment=""):
        """Opens a page of `recon view`, a file or an address. Returns the seconds until its first image is drawn."""
        address = (path if str(path).startswith("http:") else Path(path).resolve().as_uri()) + fragment
        # A page with a different fragment alone would not be loaded again.
        self.call("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")
        started = time.monotonic()
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.first !== undefined"
                  " || document.getElementById('error')?.hidden === false")
        return time.monotonic() - started
