"""A real `prow dev` for the suites: started once, on a free port, in a folder of its own, stopped at the end."""

import json
import shutil
import uuid

import pytest
from tools import BIN, Cluster, Tool


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
