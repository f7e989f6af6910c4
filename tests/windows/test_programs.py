"""`prow.exe` under Wine: the client commands against the server on Linux, and a server of its own with `prow dev`."""

import os
import shutil
import signal
import subprocess
import uuid

import pytest
from tools import PATIENCE, ROOT, Tool
from windows_host import SCRATCH

PROW = r"P:\bin\prow.exe"


@pytest.fixture(autouse=True)
def program():
    built, there = ROOT / "target" / "windows" / "prow.exe", SCRATCH / "bin" / "prow.exe"
    if built.exists():
        shutil.copy(built, there)
    assert there.exists(), "there is no prow.exe: run make windows first"


@pytest.fixture
def folder():
    """A folder on the drive P:."""
    folder = SCRATCH / f"dev-{uuid.uuid4().hex[:8]}"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


def test_the_client_speaks_to_a_server_elsewhere(windows, server, host, folder):
    shutil.copy(server.kubeconfig, folder / "kubeconfig")
    prow = [PROW, "--kubeconfig", rf"P:\{folder.name}\kubeconfig"]
    assert host.name in windows.run(*prow, "get", "nodes")
    assert "Server:" in windows.run(*prow, "version")
    said = windows.run(*prow, "run", "--nodes", host.name, "--", "cmd", "/c", "echo from here & exit 5", ok=False)
    assert "[run] from here" in said and "exit code 5" in said
    assert "Condition:    Ready=True" in windows.run(*prow, "describe", "node", host.name)


class Dev:
    """A `prow dev` under Wine."""

    def __init__(self, windows, folder):
        self.folder = folder
        self.process = subprocess.Popen(
            ["wine", PROW, "--log", "info", "dev", "--data-dir", rf"P:\{folder.name}\data", "--listen", "127.0.0.1:0", "--renew-seconds", "2"],
            env=windows.env, cwd=SCRATCH, stdout=subprocess.PIPE, stderr=open(folder / "dev.log", "a"), text=True, start_new_session=True,
        )
        line = self.process.stdout.readline().split()
        assert line[:1] == ["ready"], self.log()
        self.kubeconfig = folder / "data" / "kubeconfig"

    def log(self):
        return (self.folder / "dev.log").read_text()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE)


def of(folder):
    """Whether a command line is that of an agent, not of a runner, of a folder."""
    return lambda words: b"run" in words and any(folder.name.encode() in word for word in words)


def agents(windows, folder):
    """Pids of the agents of a folder."""
    return [pid for pid, words in windows.processes("prow-agent.exe").items() if of(folder)(words)]


def test_dev_runs_jobs_and_takes_its_agent_over_after_a_crash(windows, folder):
    dev = Dev(windows, folder)
    try:
        kubectl = Tool(shutil.which("kubectl"), dev, "default", folder)
        prow = [PROW, "--kubeconfig", rf"P:\{folder.name}\data\kubeconfig"]
        kubectl("wait", "nodes.prow.windows/agent-1", "--for=create", f"--timeout={PATIENCE}s")
        kubectl("wait", "nodes.prow.windows/agent-1", "--for=condition=Ready", f"--timeout={PATIENCE}s")
        assert "[run] first" in windows.run(*prow, "run", "--nodes", "agent-1", "--", "cmd", "/c", "echo first")
        before = agents(windows, folder)
        assert len(before) == 1
        dev.kill()
        dev = Dev(windows, folder)
        assert "[run] second" in windows.run(*prow, "run", "--nodes", "agent-1", "--", "cmd", "/c", "echo second")
        assert "is taken over" in dev.log()
        assert agents(windows, folder) == before, "the same agent goes on"
    finally:
        dev.kill()
        for pid in agents(windows, folder):
            os.kill(pid, signal.SIGKILL)
        windows.ended("prow-agent.exe", of(folder))
