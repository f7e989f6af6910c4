"""A real `prow dev` for the suites: started once, on a free port, in a folder of its own, stopped at the end."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import uuid

import pytest

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


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(folder, agents=2)
    yield cluster
    cluster.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def namespace(cluster):
    """A namespace of the test's own."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    admin = Tool(shutil.which("kubectl"), cluster, "default", cluster.folder)
    admin("create", "namespace", name)
    yield name
    admin("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(cluster, namespace, tmp_path):
    return Tool(shutil.which("kubectl"), cluster, namespace, tmp_path)


@pytest.fixture
def prow(cluster, namespace, tmp_path):
    return Tool(BIN / "prow", cluster, namespace, tmp_path)


def job(name: str, **spec) -> str:
    """A Job's manifest; without steps it does nothing at all, well."""
    spec.setdefault("steps", [{"name": "run", "script": "true"}])
    return json.dumps({"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec})


@pytest.fixture(name="job")
def job_fixture():
    return job
