#!/usr/bin/env python3
"""A stand-in for an inference engine: a real client of the KV pool that lends no memory of its own.

It answers on 127.0.0.1 only:

    GET /health          at once, whatever the pool does: {"status": "ok", "pool": "works", ...}
    PUT /put?key=K       the body becomes the value of K
    GET /get?key=K       the value of K

Configuration, lowest first: the JSON file (--config, else MOONCAKE_CONFIG_PATH), then MOONCAKE_MASTER,
MOONCAKE_TE_META_DATA_SERVER, MOONCAKE_PROTOCOL, MOONCAKE_DEVICE, MOONCAKE_LOCAL_HOSTNAME,
MOONCAKE_GLOBAL_SEGMENT_SIZE and MOONCAKE_LOCAL_BUFFER_SIZE: as real engines read them, a variable beats the file.

All calls into the pool are made by one thread, because a call blocks for many seconds while the master is away or
hung. The threads that answer HTTP only hand in work and wait for a bounded time.
"""

import argparse
import json
import os
import queue
import re
import signal
import socket
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

CALL_SECONDS = 10.0  # how long an HTTP request waits for its pool call
PROBE_SECONDS = 1.0  # how often an idle client asks the pool whether it works
RETRY_SECONDS = 0.5  # between two attempts to join the pool
CLOSE_SECONDS = 3.0  # how long leaving the pool may take at the end
MAX_WAITING = 32  # pool calls that may queue up behind a blocked one
MAX_BODY = 64 * 1024 * 1024
PROBE_KEY = "engine-probe"

SIZE = re.compile(r"^\s*([0-9]*\.?[0-9]+)\s*([kmgt]?)b?\s*$", re.IGNORECASE)
WORDS = {
    -101: "segment not found",
    -200: "no space: no store lends memory yet, or the pool is full",
    -704: "no such key",
    -706: "the key is still leased",
    -800: "transfer failed: the segment may belong to a store that has just died",
    -900: "the master does not answer",
    -901: "the master does not answer in time",
}


def log(text):
    print(f"engine: {text}", flush=True)


def words(code):
    return f"{WORDS.get(code, 'pool error')} ({code})"


def bytes_of(size):
    """`1GB`, `64 mb`, `1048576` → bytes, 1024-based, as the pool reads them."""
    match = SIZE.match(str(size))
    if not match:
        raise ValueError(f"not a size: {size!r}")
    return int(float(match.group(1)) * 1024 ** " kmgt".index(match.group(2).lower() or " "))


def settings(path):
    """What `setup` of the pool client wants, from the file and the environment."""
    values = {}
    if path:
        with open(path, encoding="utf-8") as file:
            values = json.load(file)

    def value(variable, key, default):
        return os.environ.get(variable) or values.get(key) or default

    master = value("MOONCAKE_MASTER", "master_server_address", "")
    if not master:
        raise ValueError("no master: set MOONCAKE_MASTER, or master_server_address in the file")
    return {
        "local_hostname": value("MOONCAKE_LOCAL_HOSTNAME", "local_hostname", "127.0.0.1"),
        "metadata_server": value("MOONCAKE_TE_META_DATA_SERVER", "metadata_server", "P2PHANDSHAKE"),
        "global_segment_size": bytes_of(value("MOONCAKE_GLOBAL_SEGMENT_SIZE", "global_segment_size", 0)),
        "local_buffer_size": bytes_of(value("MOONCAKE_LOCAL_BUFFER_SIZE", "local_buffer_size", "16MB")),
        "protocol": value("MOONCAKE_PROTOCOL", "protocol", "tcp"),
        "rdma_devices": value("MOONCAKE_DEVICE", "device_name", ""),
        "master_server_addr": master,
    }


class PoolError(Exception):
    """A pool call that did not work, with the HTTP status that says so."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Pool(threading.Thread):
    """The one thread that talks to the pool: joins it, rejoins it, and makes the calls others hand in."""

    def __init__(self, config):
        super().__init__(daemon=True, name="pool")
        self.config = config
        self.calls = queue.Queue(MAX_WAITING)
        self.state = "connecting"
        self.since = time.monotonic()
        self.left = threading.Event()
        self.store = None

    def call(self, operation, *arguments):
        """Runs one operation on the pool thread; raises PoolError when it fails or takes too long."""
        outcome = queue.Queue(1)
        try:
            self.calls.put_nowait((operation, arguments, outcome))
        except queue.Full:
            raise PoolError(503, "too many calls wait for the pool") from None
        try:
            result = outcome.get(timeout=CALL_SECONDS)
        except queue.Empty:
            raise PoolError(504, f"the pool has not answered in {CALL_SECONDS:.0f} s ({self.state})") from None
        if isinstance(result, Exception):
            raise result
        return result

    def leave(self):
        """Asks the thread to leave the pool and waits for it, for a bounded time."""
        try:
            self.calls.put_nowait((None, (), None))
        except queue.Full:
            return
        self.left.wait(CLOSE_SECONDS)

    def run(self):
        if not self.join_pool():
            return
        while True:
            try:
                operation, arguments, outcome = self.calls.get(timeout=PROBE_SECONDS)
            except queue.Empty:
                self.probe()
                continue
            if operation is None:
                self.store.close()
                self.left.set()
                return
            try:
                outcome.put(operation(self, *arguments))
            except Exception as error:  # a broken call must not end the only thread that can call
                outcome.put(error if isinstance(error, PoolError) else PoolError(502, f"{error}"))

    def join_pool(self):
        """Tries until it works; meanwhile calls are refused and a request to leave is obeyed."""
        from mooncake.store import MooncakeDistributedStore

        while True:
            store = MooncakeDistributedStore()
            code = store.setup(self.config)  # blocks about 4 s when nobody listens
            if code == 0:
                self.store = store
                self.become("works")
                return True
            self.become(f"connecting: {self.config['master_server_addr']} does not take us in ({code})")
            until = time.monotonic() + RETRY_SECONDS
            while (remaining := until - time.monotonic()) > 0:
                try:
                    operation, _, outcome = self.calls.get(timeout=remaining)
                except queue.Empty:
                    break
                if operation is None:
                    self.left.set()
                    return False
                outcome.put(PoolError(503, self.state))

    def probe(self):
        code = self.store.is_exist(PROBE_KEY)
        self.become("works" if code >= 0 else words(code))

    def become(self, state):
        if state != self.state:
            self.state, self.since = state, time.monotonic()
            log(f"pool {state}")

    def put(self, key, value):
        code = self.store.put(key, value)
        if code != 0:
            raise PoolError(507 if code == -200 else 502, words(code))
        return b"stored\n"

    def get(self, key):
        there = self.store.is_exist(key)
        if there == 0:
            raise PoolError(404, "no such key")
        if there < 0:
            raise PoolError(502, words(there))
        value = self.store.get(key)
        if not value:
            raise PoolError(502, "the key is listed, but its data cannot be read: its store may have just died")
        return bytes(value)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/health":
            pool = self.server.pool
            state = {"status": "ok", "pool": pool.state, "pool_since_s": round(time.monotonic() - pool.since, 1)}
            self.answer(200, json.dumps(state).encode() + b"\n", "application/json")
        elif url.path == "/get":
            self.work(Pool.get, url)
        else:
            self.answer(404, b"GET /health, GET /get?key=K or PUT /put?key=K\n")

    def do_PUT(self):
        url = urlsplit(self.path)
        length = self.headers.get("Content-Length", "")
        if not length.isdigit():
            self.close_connection = True
            self.answer(411, b"Content-Length is missing\n")
        elif int(length) > MAX_BODY:
            self.close_connection = True
            self.answer(413, f"at most {MAX_BODY} bytes\n".encode())
        else:
            body = self.rfile.read(int(length))
            if url.path == "/put":
                self.work(Pool.put, url, body)
            else:
                self.answer(404, b"PUT /put?key=K\n")

    def work(self, operation, url, *arguments):
        key = parse_qs(url.query).get("key", [""])[0]
        if not key:
            self.answer(400, b"key is missing: ?key=K\n")
            return
        try:
            self.answer(200, self.server.pool.call(operation, key, *arguments))
        except PoolError as error:
            self.answer(error.status, f"{error}\n".encode())

    def answer(self, status, body, kind="application/octet-stream"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *arguments):
        if not self.path.startswith("/health"):
            log(format % arguments)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def server_bind(self):
        # As in the base class, less its look-up of a name for the address, which may block.
        socket.socket.setsockopt(self.socket, socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_name, self.server_port = self.server_address


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--port", type=int, required=True, help="port on 127.0.0.1")
    arguments.add_argument("--config", default=os.environ.get("MOONCAKE_CONFIG_PATH"), help="JSON file")
    arguments = arguments.parse_args()

    try:
        config = settings(arguments.config)
    except (OSError, ValueError) as error:
        log(f"cannot use the configuration: {error}")
        return 78

    # The pool's library blocks signals in the thread that uses it; the main thread never does.
    wake, woken = socket.socketpair()
    woken.setblocking(False)
    signal.set_wakeup_fd(woken.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)

    try:
        server = Server(("127.0.0.1", arguments.port), Handler)
    except OSError as error:
        log(f"cannot listen on 127.0.0.1:{arguments.port}: {error}")
        return 1
    server.pool = Pool(config)
    server.pool.start()
    threading.Thread(target=server.serve_forever, daemon=True, name="http").start()
    log(f"answers on http://127.0.0.1:{arguments.port}, master {config['master_server_addr']}")

    wake.recv(1)
    log("leaving")
    server.pool.leave()
    sys.stdout.flush()
    os._exit(0)  # the library's own threads may be in a call that takes many seconds more


if __name__ == "__main__":
    sys.exit(main())
