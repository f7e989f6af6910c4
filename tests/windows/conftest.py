"""A server and a Windows host for each module: what one leaves on its host, such as a restart that is due, is not there for the next."""

import shutil
import uuid

import pytest
from tools import BIN, PATIENCE, Tool
from windows_host import SCRATCH, WINE, Host, Server, Windows


@pytest.fixture(scope="session")
def windows():
    if not (WINE / "ready").exists():
        pytest.fail("there is no Wine prefix: run make test-windows first")
    return Windows()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    server = Server(folder)
    yield server
    server.stop()


@pytest.fixture(scope="module")
def admin(server):
    return Tool(shutil.which("kubectl"), server, "default", server.folder)


@pytest.fixture(scope="module")
def host(server, admin, windows):
    admin("patch", "target", "all", "--type=merge", "-p", '{"spec": {"access": [{"namespaceSelector": {}}]}}')
    prow = Tool(BIN / "prow", server, "default", server.folder)
    token = prow("node", "token", "create", "--label", "role=windows").strip()
    host = Host(windows, server, "win-1", token)
    try:
        admin("wait", "nodes.prow.windows", host.name, "--for=create", f"--timeout={PATIENCE}s")
        admin("wait", "nodes.prow.windows", host.name, "--for=condition=Ready", f"--timeout={PATIENCE}s")
        yield host
    finally:
        host.kill()
    windows.ended("prow-agent.exe")
    shutil.rmtree(SCRATCH / host.folder, ignore_errors=True)


@pytest.fixture
def namespace(admin):
    name = f"test-{uuid.uuid4().hex[:8]}"
    admin("create", "namespace", name)
    yield name
    admin("delete", "namespace", name, "--wait=false")


@pytest.fixture
def kubectl(server, host, namespace, tmp_path):
    return Tool(shutil.which("kubectl"), server, namespace, tmp_path)


@pytest.fixture
def prow(server, host, namespace, tmp_path):
    return Tool(BIN / "prow", server, namespace, tmp_path)
