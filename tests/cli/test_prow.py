"""`prow` as an operator uses it, against a real server with two agents."""

import json
import re

def steps(name, *scripts, **spec):
    manifest = {
        "apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"steps": [{"name": f"step-{n}", "script": s} for n, s in enumerate(scripts)], **spec},
    }
    return json.dumps(manifest)


def run_to_end(prow, name, manifest):
    prow("apply", "-f", "-", stdin=manifest)
    prow("wait", f"job/{name}", "--for=condition=Finished", "--timeout=60s")


def test_applies_shows_and_deletes_like_kubectl(prow, kubectl):
    assert prow("apply", "-f", "-", stdin=steps("a", "true", suspend=True)) == "job.prow.windows/a created\n"
    assert prow("apply", "-f", "-", stdin=steps("a", "true", suspend=True)) == "job.prow.windows/a unchanged\n"
    assert "configured" in prow("apply", "-f", "-", stdin=steps("a", "true", suspend=True, priority=3))
    # both programs read each other's annotation
    assert "configured" in kubectl("apply", "-f", "-", stdin=steps("a", "true", suspend=True))
    assert kubectl("get", "job", "a", "-o", "jsonpath={.spec.priority}") == "", "what prow had set, kubectl took away"
    prow("apply", "-f", "-", stdin=steps("a", "true", suspend=True, priority=3))
    assert prow("get", "jobs", "-o", "name") == "job.prow.windows/a\n"
    assert prow("get", "job/a", "-o", "jsonpath={.spec.priority}") == "3"
    assert prow("get", "pj", "--no-headers").split()[0] == "a"
    assert prow("get", "jobs", "-o", "wide").split()[:9] == kubectl("get", "jobs", "-o", "wide").split()[:9]
    assert '"a" deleted' in prow("delete", "job", "a")
    assert prow.run("get", "job", "a", ok=False).returncode == 1
    assert prow("get", "job", "a", "--ignore-not-found") == ""


def test_watches(prow):
    prow("apply", "-f", "-", stdin=steps("a", "true", suspend=True))
    watch = prow.start("get", "jobs", "-w")
    assert watch.stdout.readline().split()[0] == "NAME"
    assert watch.stdout.readline().split()[0] == "a"
    prow("apply", "-f", "-", stdin=steps("b", "true", suspend=True))
    assert watch.stdout.readline().split()[0] == "b"
    watch.kill()
    watch.wait()


def test_shows_which_step_failed_with_which_code_and_its_last_words(prow):
    run_to_end(prow, "broken", steps("broken", "echo fine", "echo before; echo the disk is gone >&2; exit 3", "echo never"))
    text = prow("describe", "job", "broken")
    assert re.search(r"Step step-1 failed on agent-\d", text)
    assert "Exit code 3" in text
    assert "the disk is gone" in text
    assert "Next:" in text and "prow logs broken --failed" in text
    assert "the disk is gone" in prow("logs", "broken", "--failed")
    assert "fine" not in prow("logs", "broken", "--failed")
    task = prow("get", "tasks", "-o", "name").strip()
    assert "Exit code 3" in prow("describe", task)


def test_follows_logs_with_the_names_of_steps(prow):
    prow("apply", "-f", "-", stdin=steps("talk", "echo one; sleep 0.2; echo two", "echo three"))
    assert prow("logs", "-f", "talk").splitlines() == ["[step-0] one", "[step-0] two", "[step-1] three"]
    assert prow("logs", "talk", "--step", "step-1") == "[step-1] three\n"
    assert prow("logs", "talk", "--step", "step-0", "--tail", "1") == "[step-0] two\n"
    stamped = prow("logs", "talk", "--timestamps").splitlines()[0]
    assert re.fullmatch(r"\[step-0\] \d{4}-\d\d-\d\dT\S+Z one", stamped)
    task = prow("get", "tasks", "-o", "name").strip()
    assert prow("logs", task).count("\n") == 3


def test_runs_a_command_on_every_node(prow):
    done = prow.run("run", "--target", "all", "--", "echo", "hello there")
    assert sorted(line.split("] ")[1] for line in done.stdout.splitlines() if line.startswith("[")) == ["hello there"] * 2
    assert re.search(r"agent-1\s+Succeeded\s+0", done.stdout) and re.search(r"agent-2\s+Succeeded\s+0", done.stdout)
    folded = prow("run", "--target", "all", "--fold", "--", "echo", "same")
    assert folded.count("same") == 1 and "agent-1, agent-2 (2):" in folded
    one = prow("run", "--target", "all", "--exclude", "agent-2", "--shell", "sh", "--", "echo $PROW_NODE | tr a-z A-Z")
    assert "AGENT-1" in one and "agent-2" not in one


def test_a_failed_run_ends_with_exit_code_1_and_typing_errors_with_2(prow):
    assert prow.run("run", "--target", "all", "-f", "-", stdin="exit 7", ok=False).returncode == 1
    assert prow.run("run", "--", "true", ok=False).returncode == 2
    assert prow.run("nonsense", ok=False).returncode == 2
    assert prow.run("get", "jobs", "-o", "nonsense", ok=False).returncode == 2


def test_a_server_that_is_not_there_ends_with_exit_code_3(prow, tmp_path):
    config = open(prow.cluster.kubeconfig).read()
    (tmp_path / "kubeconfig").write_text(re.sub(r"https://127.0.0.1:\d+", "https://127.0.0.1:9", config))
    prow.cluster = type("Gone", (), {"kubeconfig": tmp_path / "kubeconfig"})
    done = prow.run("get", "jobs", ok=False)
    assert done.returncode == 3 and "could not be reached" in done.stderr


def test_plans_before_anything_happens(prow):
    manifest = steps("planned", "true", targetRef={"name": "all"}, completionMode="PerNode",
                     envFrom=[{"secretRef": {"name": "absent"}}])
    prow("cordon", "agent-2")
    try:
        done = prow.run("plan", "-f", "-", stdin=manifest, ok=False)
    finally:
        prow("uncordon", "agent-2")
    assert "once on each of 2 nodes" in done.stdout
    assert re.search(r"agent-1\s+available", done.stdout) and re.search(r"agent-2\s+unavailable\s+cordoned", done.stdout)
    assert f"Secret absent does not exist in namespace {prow.namespace}" in done.stdout
    assert prow("get", "jobs", "-o", "name") == ""
    assert "did you mean" in prow.fails("plan", "-f", "-", stdin=manifest.replace('"script"', '"scrip"'))


def test_says_why_a_job_waits(prow):
    prow("apply", "-f", "-", stdin=steps("picky", "true", nodeSelector={"role": "nowhere"}))
    prow("wait", "job/picky", "--for=jsonpath={.status.waiting[0].count}=1", "--timeout=60s")
    text = prow("why", "picky", "--all-nodes")
    assert "1 waiting:" in text
    assert "nodeSelector wants role=nowhere, it has no such label" in text
    prow("cancel", "picky", "--reason", "no such node")
    prow("wait", "job/picky", "--for=jsonpath={.status.phase}=Cancelled", "--timeout=60s")


def test_cancels_a_running_job_and_its_finally_steps_run(prow, tmp_path):
    mark = tmp_path / "cleaned"
    prow("apply", "-f", "-", stdin=steps("long", "sleep 600", **{"finally": [{"name": "clean", "script": f"touch {mark}"}]}))
    prow("wait", "job/long", "--for=jsonpath={.status.active}=1", "--timeout=60s")
    task = prow("get", "tasks", "-o", "name").strip()
    prow("wait", task, "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    prow("cancel", "long", "--reason", "enough")
    prow("wait", "job/long", "--for=condition=Finished", "--timeout=60s")
    assert prow("get", "job", "long", "-o", "jsonpath={.status.phase}") == "Cancelled"
    assert mark.exists()


def test_makes_tokens_for_new_hosts(prow):
    token = prow("node", "token", "create", "--label", "role=web", "--name", "web*", "--ttl", "1h").strip()
    assert re.fullmatch(r"prow1\.\w+\.\w+\.[0-9a-f]{64}", token)
    row = next(line for line in prow("node", "token", "list").splitlines() if line.split()[0] == token.split(".")[1])
    assert "web*" in row and "role=web" in row


def test_shows_how_busy_nodes_and_queues_are(prow):
    nodes = prow("top", "nodes").splitlines()
    assert nodes[0].split() == ["NAME", "STATE", "TASKS", "SLOTS", "CPU", "MEMORY"]
    assert [line.split()[0] for line in nodes[1:]] == ["agent-1", "agent-2"]
    assert prow("top", "queues").splitlines()[1].split()[0] == "default"


def test_output_is_plain_where_nobody_watches(prow):
    run_to_end(prow, "plain", steps("plain", "exit 1"))
    assert "\x1b" not in prow("describe", "job", "plain") + prow("get", "jobs") + prow("logs", "plain")


def test_version_and_completion(prow):
    assert "Client: " in prow("version") and "Server: v1." in prow("version")
    assert "_prow" in prow("completion", "bash")
