"""What the suites talk to, and with: a `prow dev`, and command line tools."""

import json
import os
import pathlib
import signal
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BIN = pathlib.Path(os.environ.get("PROW_BIN", ROOT / "target" / "debug"))
# how long a thing that must happen may take before the run is given up; never a measure of speed
PATIENCE = int(os.environ.get("PATIENCE", "120"))


class Cluster:
    """A `prow dev` that runs."""

    def __init__(self, folder: pathlib.Path, agents: int, *flags: str):
        self.folder = folder
        self.log = open(folder / "prow-dev.log", "w")
        self.process = subprocess.Popen(
            [BIN / "prow", "dev", "--data-dir", folder / "data", "--listen", "127.0.0.1:0", "--agents", str(agents), *flags],
            stdout=subprocess.PIPE, stderr=self.log, text=True, start_new_session=True,
        )
        line = self.process.stdout.readline().split()
        if line[:1] != ["ready"]:
            self.log.flush()
            sys.exit("prow dev did not start:\n" + (folder / "prow-dev.log").read_text())
        self.url = line[1]
        self.kubeconfig = line[2].removeprefix("kubeconfig=")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(PATIENCE) == 0, (self.folder / "prow-dev.log").read_text()


class Tool:
    """A command line tool that talks to the cluster, in one namespace."""

    def __init__(self, program, cluster: Cluster, namespace: str, folder: pathlib.Path):
        self.program, self.cluster, self.namespace, self.folder = program, cluster, namespace, folder

    def run(self, *args, stdin=None, ok=True, env=None):
        """Runs it to its end; with ok=False it must fail."""
        done = subprocess.run(
            [self.program, "--kubeconfig", self.cluster.kubeconfig, "-n", self.namespace, *map(str, args)],
            input=stdin, capture_output=True, text=True, timeout=PATIENCE, cwd=self.folder,
            env={**os.environ, "HOME": str(self.folder), **(env or {})},
        )
        said = f"{' '.join(map(str, args))}\n{done.stdout}{done.stderr}"
        assert (done.returncode == 0) == ok, f"exit code {done.returncode}: {said}"
        return done

    def __call__(self, *args, **kwargs) -> str:
        return self.run(*args, **kwargs).stdout

    def fails(self, *args, **kwargs) -> str:
        """What it says when it fails, as it must."""
        done = self.run(*args, ok=False, **kwargs)
        return done.stdout + done.stderr

    def json(self, *args):
        return json.loads(self(*args, "-o", "json"))

    def start(self, *args) -> subprocess.Popen:
        """Starts it and goes on."""
        return subprocess.Popen(
            [self.program, "--kubeconfig", self.cluster.kubeconfig, "-n", self.namespace, *map(str, args)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self.folder,
        )
