"""Kills a refund inside its tool, in LangGraph and in Steersman, and counts what the shop paid."""
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = os.path.abspath(sys.argv[1])
PATIENCE = 120  # seconds; far more than any step needs


class Shop(ThreadingHTTPServer):
    """Books a refund when it is asked to. It never answers the first request: the process that asked is killed first."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Desk)
        self.book = []
        self.booked = threading.Event()
        self.killed = threading.Event()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


class Desk(BaseHTTPRequestHandler):
    def do_POST(self):
        order = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.book.append(order)
        number = len(self.server.book)
        self.server.booked.set()
        self.server.killed.wait(PATIENCE)
        self.answer({"id": f"r-{number}", **order})

    def do_GET(self):
        order = self.path.rsplit("/", 1)[1]
        found = [n for n, entry in enumerate(self.server.book, 1) if entry["order"] == order]
        self.answer({"found": bool(found), "id": f"r-{found[0]}" if found else None})

    def answer(self, body):
        text = json.dumps(body).encode()
        try:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)
        except OSError:
            pass  # the process that asked is dead

    def log_message(self, *_):
        pass


def killed_and_continued(name, begin, resume, environment):
    """Runs `begin`, kills it when the shop has booked, runs `resume`, and returns the number of refunds."""
    shop = Shop()
    threading.Thread(target=shop.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        setting = {**os.environ, **environment, "SHOP_URL": shop.url}

        def start(command):
            return subprocess.Popen(
                [part.format(folder=folder) for part in command],
                cwd=folder, env=setting, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )

        first = start(begin)
        if not shop.booked.wait(PATIENCE):
            first.kill()
            sys.exit(f"{name}: no refund was asked for\n{first.communicate()[0]}")
        first.kill()  # SIGKILL: the process cannot write another byte
        first.communicate()
        shop.killed.set()
        second = start(resume)
        said = second.communicate(timeout=PATIENCE)[0]
        shop.shutdown()
    print(f"\n{name}")
    print("  killed inside the tool, after the shop had paid; then a new process continues:")
    for line in said.strip().splitlines():
        print(f"  | {line.rstrip()}")
    if second.returncode != 0:
        sys.exit(f"{name}: exit code {second.returncode}")
    print(f"  the shop's book: {len(shop.book)} refund{'s' * (len(shop.book) != 1)}")
    return len(shop.book)


def main():
    ours = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    graph = [sys.executable, str(HERE / "with_langgraph.py"), "{folder}/checkpoints.db"]
    saver = version("langgraph-checkpoint-sqlite")
    theirs = killed_and_continued(
        f"LangGraph {version('langgraph')}, SqliteSaver {saver}, durability=\"sync\"",
        [*graph, "begin"], [*graph, "resume"], {"LANGSMITH_TRACING": "false"},
    )
    steersman = [PROGRAM, "--store", "{folder}/sessions.db", "run"]
    scripted = ["--script-all", str(HERE / "script.yaml")]
    own = killed_and_continued(
        f"Steersman {ours}",
        [*steersman, str(HERE), *scripted, "--input", "My kettle arrived broken."],
        [*steersman, "--resume", "last", *scripted], {},
    )
    print(f"\nThe customer was to get one refund. LangGraph: {theirs}. Steersman: {own}.")


main()
