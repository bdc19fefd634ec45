"""A headless Chromium, driven through chromedriver's HTTP interface (the W3C WebDriver protocol) with urllib."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
    "--disable-dev-shm-usage",
)  # fmt: skip


def missing() -> str:
    """Return why there is no browser to drive, or nothing."""
    names = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"not installed: {', '.join(names)} (Debian: apt-get install chromium chromium-driver)" if names else ""


class Browser:
    """One window; a context manager that ends the browser and its driver."""

    def __init__(self, profile: Path, width: int, height: int, phone: bool = False):
        self._profile, self._size, self._phone = profile, (width, height), phone
        self.width = width

    def __enter__(self) -> Browser:
        width, height = self._size
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        port = None
        for line in self._driver.stdout:
            if "started successfully on port" in line:
                port = int(line.rstrip(". \n").rsplit(" ", 1)[1])
                break
        self._base = f"http://127.0.0.1:{port}"
        options = {
            "binary": shutil.which("chromium"),
            "args": [*FLAGS, f"--user-data-dir={self._profile}", f"--window-size={width},{height}"],
        }
        if self._phone:
            metrics = {"width": width, "height": height, "pixelRatio": 2, "touch": True}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            answer = self._post("/session", {"capabilities": {"alwaysMatch": capabilities}})
        except BaseException:
            self.__exit__()
            raise
        self._base += f"/session/{answer['sessionId']}"
        return self

    def __exit__(self, *_):
        if "/session/" in self._base:
            urllib.request.urlopen(urllib.request.Request(self._base, method="DELETE"), timeout=20).read()
        self._driver.terminate()
        self._driver.wait(timeout=20)
        self._driver.stdout.close()

    def _post(self, path: str, body: dict):
        request = urllib.request.Request(
            self._base + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {json.load(error)['value']['message']}") from None

    def open(self, url: str) -> None:
        self._post("/url", {"url": url})

    def run(self, script: str, *arguments):
        """Return what a JavaScript function body returns."""
        return self._post("/execute/sync", {"script": script, "args": list(arguments)})

    def click(self, selector: str) -> None:
        """Click as a user does: the element is scrolled into view and has to be reachable."""
        self._post(f"/element/{self._find(selector)}/click", {})

    def type(self, selector: str, text: str) -> None:
        self._post(f"/element/{self._find(selector)}/value", {"text": text})

    def press(self, key: str) -> None:
        """Press a key of the WebDriver specification, such as "\ue00c" for Escape."""
        events = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self._post("/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": events}]})

    def _find(self, selector: str) -> str:
        return self._post("/element", {"using": "css selector", "value": selector})[ELEMENT]

    def console(self) -> list[str]:
        """Return the messages that the console has had since the last call."""
        return [f"{entry['level']}: {entry['message']}" for entry in self._post("/se/log", {"type": "browser"})]

    def wait(self, script: str, seconds: float = 5) -> None:
        """Wait until a script returns something true; raises TimeoutError."""
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise TimeoutError(script)
            time.sleep(0.05)

    def screenshot(self, path: Path) -> None:
        with urllib.request.urlopen(f"{self._base}/screenshot", timeout=60) as answer:
            path.write_bytes(base64.b64decode(json.load(answer)["value"]))
