"""Chromium, driven through Debian's chromedriver: the few calls of the WebDriver protocol that tests and bench/zoom.py need. Where one of the two
is missing it says so (REASON), and tests are skipped."""
import base64
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
REASON = None if CHROMIUM and DRIVER else "no chromium" if not CHROMIUM else "no chromedriver: apt install chromium-driver"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key under which the protocol names an element
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014", "Down": "\ue015", "Control": "\ue009"}


class Browser:
    def __init__(self, folder="browser"):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.driver = subprocess.Popen([DRIVER, f"--port={port}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}"
        try:
            self._wait()
            options = {"binary": CHROMIUM, "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,900",
                                                    "--user-data-dir=" + os.path.abspath(folder)]}
            self.url += "/session/" + self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
                "browserName": "chrome", "goog:chromeOptions": options, "timeouts": {"script": 120000}}}})["sessionId"]
        except BaseException:
            self.driver.kill()
            raise

    def _wait(self):
        for _ in range(300):
            with contextlib.suppress(OSError):
                return urllib.request.urlopen(self.url + "/status", timeout=5).close()
            time.sleep(0.1)
        raise RuntimeError("chromedriver does not answer")

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, method=method, data=json.dumps(body or {}).encode() if method == "POST" else None,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{path}: {json.load(error)['value']['message']}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with contextlib.suppress(RuntimeError, OSError):
            self.call("DELETE", "")
        self.driver.terminate()
        self.driver.wait()

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, path, width=1280, height=900, dark=False, scripts=True):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.devtools("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("POST", "/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *arguments):
        """The script's value after what it did has been drawn."""
        return self.call("POST", "/execute/async", {"args": list(arguments), "script":
            "const done = arguments[arguments.length - 1], given = [...arguments].slice(0, -1);"
            "Promise.resolve((function() {" + script + "}).apply(null, given)).then(v => requestAnimationFrame(() => requestAnimationFrame(() => done(v))));"})

    def look(self, script, *arguments):
        """The script's value now; works where the page itself may run none."""
        return self.call("POST", "/execute/sync", {"args": list(arguments), "script": script})

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call("POST", f"/element/{self.find(selector)}/click")
        self.run("")

    def type(self, *keys):
        """Into whatever has the focus; names of keys (KEYS) or letters."""
        strokes = [(kind, KEYS.get(key, key)) for key in keys for kind in ("keyDown", "keyUp")]
        self.act({"type": "key", "id": "keyboard", "actions": [{"type": kind, "value": key} for kind, key in strokes]})

    def drag(self, *tracks, pointer="mouse", steps=8):
        """Each track is of one pointer, [(x, y) …] in the window, all at the same time."""
        hands = []
        for k, track in enumerate(tracks):
            moves = [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 0 if i == 0 else 20 * steps} for i, (x, y) in enumerate(track)]
            hands.append({"type": "pointer", "id": f"{pointer}{k}", "parameters": {"pointerType": pointer},
                          "actions": [moves[0], {"type": "pointerDown", "button": 0}, *moves[1:], {"type": "pointerUp", "button": 0}]})
        self.act(*hands)

    def hover(self, *track):
        self.act({"type": "pointer", "id": "mouse0", "parameters": {"pointerType": "mouse"},
                  "actions": [{"type": "pointerMove", "x": round(x), "y": round(y), "duration": 50} for x, y in track]})

    def wheel(self, x, y, by, held=()):
        """One notch; by: (right, down). Wheels reach the page some frames later than they are turned."""
        self.run("window.turned = false; window.addEventListener('wheel', () => { window.turned = true; }, {capture: true, once: true, passive: true})")
        keys = [{"type": "keyDown", "value": KEYS[key]} for key in held]
        self.act({"type": "key", "id": "keyboard", "actions": keys + [{"type": "pause"}] + [{"type": "keyUp", "value": KEYS[key]} for key in held]},
                 {"type": "wheel", "id": "wheel", "actions": [{"type": "pause"}] * len(keys) + [
                     {"type": "scroll", "x": round(x), "y": round(y), "deltaX": by[0], "deltaY": by[1], "duration": 0, "origin": "viewport"}]})
        self.run("return new Promise(done => { const wait = () => window.turned ? done() : setTimeout(wait, 10); wait(); })")

    def act(self, *hands):
        self.call("POST", "/actions", {"actions": list(hands)})
        self.run("")

    def shoot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("GET", "/screenshot")))
