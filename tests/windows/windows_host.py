"""A `prow server` on Linux and an agent of the Windows build under Wine, installed as a service. Needs `make windows` and Wine; the
prefix has two drives, its own C: and the scratch folder P:."""

import os
import pathlib
import select
import signal
import subprocess
import sys
import time
import uuid

from tools import BIN, PATIENCE, ROOT

WINE = ROOT / "target" / "wine"
SCRATCH = WINE / "scratch"


class Server:
    """A `prow server` that runs."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.log = open(folder / "server.log", "w")
        self.process = subprocess.Popen(
            [BIN / "prow", "server", "--data-dir", folder / "data", "--listen", "127.0.0.1:0", "--renew-seconds", "2"],
            stdout=subprocess.PIPE, stderr=self.log, text=True, start_new_session=True,
        )
        line = self.process.stdout.readline().split()
        if line[:1] != ["ready"]:
            sys.exit("prow server did not start:\n" + (folder / "server.log").read_text())
        self.url = line[1]
        self.kubeconfig = line[2].removeprefix("kubeconfig=")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, (self.folder / "server.log").read_text()


class Windows:
    """What stands in for a Windows host."""

    def __init__(self):
        self.env = {
            **os.environ, "WINEPREFIX": str(WINE / "prefix"), "WINEDEBUG": "-all", "WINEARCH": "win64",
            "WINEDLLOVERRIDES": "mscoree,mshtml=",
        }
        self.env.pop("DISPLAY", None)

    def run(self, *args, ok=True) -> str:
        """Runs a Windows program to its end."""
        done = subprocess.run(
            ["wine", *map(str, args)], env=self.env, cwd=SCRATCH, capture_output=True, text=True, timeout=PATIENCE, errors="replace",
        )
        said = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, f"exit code {done.returncode}: {' '.join(map(str, args))}\n{said}"
        return said

    def agent(self, *args, ok=True) -> str:
        return self.run(r"P:\bin\prow-agent.exe", *args, ok=ok)

    def processes(self, program: str) -> dict[int, list[bytes]]:
        """Pids, as Linux counts them, of the living processes of a program in this prefix, with their command lines."""
        found = {}
        for process in pathlib.Path("/proc").iterdir():
            if not process.name.isdigit():
                continue
            try:
                words = (process / "cmdline").read_bytes().split(b"\0")
                prefix = f"WINEPREFIX={WINE / 'prefix'}".encode() in (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if prefix and any(word.lower().endswith(program.lower().encode()) for word in words[:2]):
                found[int(process.name)] = words
        return found

    def ended(self, program: str, of=lambda words: True):
        """Waits until the processes of a program have ended; those whose command line does not count are left out."""
        hung = time.monotonic() + PATIENCE
        while left := {pid: words for pid, words in self.processes(program).items() if of(words)}:
            for pid in left:
                try:
                    process = os.pidfd_open(pid)
                except ProcessLookupError:
                    continue
                try:
                    ready, _, _ = select.select([process], [], [], max(0, hung - time.monotonic()))
                finally:
                    os.close(process)
                assert ready, f"still there: {left}"


class Host:
    """A node whose agent runs under Wine."""

    def __init__(self, windows: Windows, server: Server, name: str, token: str):
        self.windows, self.server, self.name = windows, server, name
        self.folder = f"agent-{uuid.uuid4().hex[:8]}"
        self.log = SCRATCH / f"{self.folder}.log"
        self.start("--token", token, "--name", name)

    def start(self, *enrol: str):
        """Starts the agent; only the first start enrols."""
        self.process = subprocess.Popen(
            ["wine", r"P:\bin\prow-agent.exe", "run", "--data-dir", rf"P:\{self.folder}",
             "--server", self.server.url, "--renew-seconds", "2", "--slots", "4", *enrol],
            env=self.windows.env, cwd=SCRATCH, stdout=subprocess.DEVNULL, stderr=open(self.log, "a"), start_new_session=True,
        )

    def agent(self) -> int:
        """The agent's own process, as Linux counts it."""
        return self.process.pid

    def kill(self):
        """SIGKILL to the agent, and it alone."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def text(self) -> str:
        return self.log.read_text(errors="replace")
