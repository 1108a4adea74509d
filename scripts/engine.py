#!/usr/bin/env python3
"""A stand-in for an inference engine: a real client of the KV pool that lends no memory of its own.

It answers on 127.0.0.1 only:

    GET /health          at once, whatever the pool does: {"status": "ok", "pool": "works", ...}
    PUT /put?key=K       the body becomes the value of K
    GET /get?key=K       the value of K

Configuration, lowest first: the JSON file (--config, else MOONCAKE_CONFIG_PATH), then MOONCAKE_MASTER,
MOONCAKE_TE_META_DATA_SERVER, MOONCAKE_PROTOCOL, MOONCAKE_DEVICE, MOONCAKE_LOCAL_HOSTNAME,
MOONCAKE_GLOBAL_SEGMENT_SIZE and MOONCAKE_LOCAL_BUFFER_SIZE: as real engines read them, a variable beats the file.

The pool's client lives in a child process, as in real engines, and for a like reason: its `setup` blocks for seconds
without letting any other Python thread run, and its calls block while the master is away or hangs. The threads that
answer HTTP hand work to the child and wait for a bounded time.
"""

import argparse
import ctypes
import itertools
import json
import multiprocessing
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
SILENCE_SECONDS = 3.0  # a client that has said nothing for so long is in a call that blocks
RETRY_SECONDS = 0.5  # between two attempts to join the pool
CLOSE_SECONDS = 3.0  # how long leaving the pool may take at the end
MAX_BODY = 64 * 1024 * 1024
PROBE_KEY = "engine-probe"
PR_SET_PDEATHSIG = 1

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


class Client:
    """The child's side: the only process that loads the pool's library."""

    def __init__(self, pipe, config):
        self.pipe = pipe
        self.config = config
        self.store = None
        self.early = []  # calls that came before the pool was joined; whoever made them waits a bounded time

    def run(self):
        """Joins the pool, then makes the calls that are handed in until it is told to leave."""
        self.join_pool()
        while True:
            if self.pipe.poll(PROBE_SECONDS):
                self.answer(*self.pipe.recv())
            else:
                self.probe()

    def join_pool(self):
        from mooncake.store import MooncakeDistributedStore

        while True:
            store = MooncakeDistributedStore()
            code = store.setup(self.config)  # blocks about 4 s when nobody listens
            if code == 0:
                self.store = store
                self.probe()
                while self.early:
                    self.answer(*self.early.pop(0))
                return
            self.say(f"connecting: {self.config['master_server_addr']} does not take us in ({code})")
            if self.pipe.poll(RETRY_SECONDS):
                call = self.pipe.recv()
                if call[1] == "leave":
                    os._exit(0)
                self.early.append(call)
                time.sleep(RETRY_SECONDS)

    def say(self, state):
        self.pipe.send((None, 0, state))

    def probe(self):
        code = self.store.is_exist(PROBE_KEY)
        self.say("works" if code >= 0 else words(code))

    def answer(self, number, operation, key, value):
        if operation == "leave":
            self.store.close()
            os._exit(0)
        try:
            result = (200, self.put(key, value) if operation == "put" else self.get(key))
        except PoolError as error:
            result = (error.status, f"{error}\n".encode())
        self.pipe.send((number, *result))

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


def run_client(pipe, config, parent):
    """Entry of the child: it never outlives the engine, however that one ends."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == parent:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)  # the engine itself says when to leave
        Client(pipe, config).run()


class Pool:
    """The engine's side: hands calls to the child and knows how it is."""

    def __init__(self, config):
        self.pipe, other = multiprocessing.Pipe()
        self.child = multiprocessing.get_context("fork").Process(
            target=run_client, args=(other, config, os.getpid()), daemon=True
        )
        self.child.start()
        other.close()
        self.sending = threading.Lock()
        self.numbers = itertools.count(1)
        self.waiting = {}
        self.state = "connecting"
        self.heard = time.monotonic()

    def listen(self):
        """Takes what the child says; returns when it has gone."""
        while True:
            try:
                number, status, body = self.pipe.recv()
            except (EOFError, OSError):
                return
            self.heard = time.monotonic()
            if number is None:
                if body != self.state:
                    self.state = body
                    log(f"pool {body}")
            elif number in self.waiting:
                self.waiting.pop(number).put((status, body))

    def describe(self):
        """How the pool is, at once, from what was heard last."""
        silence = time.monotonic() - self.heard
        if silence > SILENCE_SECONDS:
            return f"no answer for {silence:.0f} s (before: {self.state})"
        return self.state

    def call(self, operation, key, value=b""):
        """One call into the pool: HTTP status and body."""
        number, outcome = next(self.numbers), queue.Queue(1)
        if not self.sending.acquire(timeout=CALL_SECONDS):
            return 503, b"another call blocks the pool\n"
        try:
            self.waiting[number] = outcome
            self.pipe.send((number, operation, key, value))
        finally:
            self.sending.release()
        try:
            return outcome.get(timeout=CALL_SECONDS)
        except queue.Empty:
            self.waiting.pop(number, None)
            return 504, f"the pool has not answered in {CALL_SECONDS:.0f} s: {self.describe()}\n".encode()

    def leave(self):
        """Leaves the pool, or gives up on it after a bounded time."""
        if self.child.is_alive() and self.sending.acquire(timeout=CLOSE_SECONDS):
            self.pipe.send((0, "leave", "", b""))
        self.child.join(CLOSE_SECONDS)
        self.child.kill()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self):
        url = urlsplit(self.path)
        if url.path == "/health":
            state = {"status": "ok", "pool": self.server.pool.describe()}
            self.answer(200, json.dumps(state).encode() + b"\n", "application/json")
        elif url.path == "/get":
            self.work("get", url)
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
                self.work("put", url, body)
            else:
                self.answer(404, b"PUT /put?key=K\n")

    def work(self, operation, url, value=b""):
        key = parse_qs(url.query).get("key", [""])[0]
        if key:
            self.answer(*self.server.pool.call(operation, key, value))
        else:
            self.answer(400, b"key is missing: ?key=K\n")

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

    try:
        server = Server(("127.0.0.1", arguments.port), Handler)
    except OSError as error:
        log(f"cannot listen on 127.0.0.1:{arguments.port}: {error}")
        return 1
    ended, end = socket.socketpair()
    end.setblocking(False)
    signal.set_wakeup_fd(end.fileno())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    server.pool = Pool(config)  # forks: before any thread exists

    def listen():
        server.pool.listen()
        end.send(b"\0")  # no signal has this number: the child has gone by itself

    for task in (server.serve_forever, listen):
        threading.Thread(target=task, daemon=True).start()
    log(f"answers on http://127.0.0.1:{arguments.port}, master {config['master_server_addr']}")

    by_itself = ended.recv(1) == b"\0"
    log("the pool's client has died" if by_itself else "leaving")
    server.pool.leave()
    os._exit(1 if by_itself else 0)  # threads may still wait for the pool


if __name__ == "__main__":
    sys.exit(main())
