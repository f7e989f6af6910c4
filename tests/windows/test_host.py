"""What a host says of itself, and what is told of it to whoever is to help."""

import zipfile

from tools import PATIENCE
from windows_host import SCRATCH

CANARY = "canary-7f3a-in-the-mine"
SERVICING = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Component Based Servicing\RebootPending"


def condition(kubectl, host, name):
    node = kubectl.json("get", "nodes.prow.windows", host.name)
    return next(c for c in node["status"]["conditions"] if c["type"] == name)


def test_a_node_says_what_it_is(kubectl, host):
    node = kubectl.json("get", "nodes.prow.windows", host.name)
    status, info = node["status"], node["status"]["nodeInfo"]
    assert info["operatingSystem"] == "windows" and info["architecture"] == "amd64"
    assert info["kernelVersion"].startswith("10.0.") and "Windows" in info["osImage"]
    assert {"shell/cmd", "shell/powershell"} <= set(status["features"])
    assert info["domainRole"] == node["metadata"]["labels"]["prow.windows/domain-role"] == "standalone"
    assert int(status["capacity"]["memory"]) > 1 << 20 and int(status["capacity"]["disk"]) > 1 << 20


def test_a_mark_that_a_restart_is_due_is_seen_and_named(kubectl, host, windows):
    """AL-08: the mark is named."""
    assert condition(kubectl, host, "PendingReboot")["status"] == "False"
    windows.run("reg", "add", SERVICING, "/f")
    try:
        kubectl("wait", "nodes.prow.windows", host.name, "--for=condition=PendingReboot", f"--timeout={PATIENCE}s")
        assert "CBS RebootPending" in condition(kubectl, host, "PendingReboot")["message"]
    finally:
        windows.run("reg", "delete", SERVICING, "/f")
    kubectl("wait", "nodes.prow.windows", host.name, "--for=condition=PendingReboot=False", f"--timeout={PATIENCE}s")


def test_a_bundle_tells_what_happened_and_no_secret(kubectl, prow, job, host, windows, server):
    """SE-05."""
    kubectl("create", "secret", "generic", "db", f"--from-literal=password={CANARY}")
    env = [{"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]
    step = {"name": "leak", "shell": "cmd", "script": "echo %PASSWORD%\nexit 7\n", "env": env}
    kubectl("apply", "-f", "-", stdin=job("leaks", nodeSelector={"prow.windows/os": "windows"}, steps=[step]))
    kubectl("wait", "job.prow.windows/leaks", "--for=condition=Finished", f"--timeout={PATIENCE}s")
    bundle = SCRATCH / f"{host.folder}.zip"
    windows.agent(
        "diagnose", "--data-dir", rf"P:\{host.folder}", "--output", rf"P:\{bundle.name}",
        "--server", server.url.replace("https://", f"https://user:{CANARY}@"),
    )
    try:
        with zipfile.ZipFile(bundle) as archive:
            texts = {name: archive.read(name).decode() for name in archive.namelist()}
    finally:
        bundle.unlink()
    told = [name for name, text in texts.items() if CANARY in text or "PRIVATE KEY" in text]
    assert told == []
    assert any("stepEnded" in text for name, text in texts.items() if name.endswith("run.jsonl"))
    assert "answers" in texts["server.txt"] and host.name in texts["state.txt"]


def test_a_folder_in_use_has_one_agent(windows, host):
    said = windows.agent("run", "--data-dir", rf"P:\{host.folder}", "--server", host.server.url, ok=False)
    assert "another agent is running" in said
