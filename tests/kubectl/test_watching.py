"""kubectl 1.37, unchanged, watches and waits."""


def test_watches_changes_as_they_happen(kubectl):
    kubectl("create", "configmap", "a")
    watch = kubectl.start("get", "cm", "-w", "-o", "name")
    assert watch.stdout.readline().strip() == "configmap/a"
    kubectl("create", "configmap", "b")
    assert watch.stdout.readline().strip() == "configmap/b"
    kubectl("label", "cm", "a", "x=y")
    assert watch.stdout.readline().strip() == "configmap/a"
    watch.kill()
    watch.wait()


def test_watches_one_object_in_a_table(kubectl, job):
    kubectl("create", "-f", "-", stdin=job("seen", suspend=True))
    watch = kubectl.start("get", "job", "seen", "--watch")
    assert watch.stdout.readline().split()[0] == "NAME"
    assert watch.stdout.readline().split()[0] == "seen"
    kubectl("label", "job", "seen", "x=y")
    assert watch.stdout.readline().split()[0] == "seen"
    watch.kill()
    watch.wait()


def test_waits_for_a_path_and_for_the_end(kubectl, job):
    kubectl("create", "-f", "-", stdin=job("later", suspend=True))
    waiting = kubectl.start("wait", "job/later", "--for=jsonpath={.spec.priority}=5", "--timeout=60s")
    kubectl("patch", "job", "later", "--type=merge", "-p", '{"spec": {"priority": 5}}')
    assert "condition met" in waiting.communicate()[0]
    assert waiting.returncode == 0
    kubectl("create", "configmap", "going")
    waiting = kubectl.start("wait", "cm/going", "--for=delete", "--timeout=60s")
    kubectl("delete", "cm", "going")
    waiting.communicate()
    assert waiting.returncode == 0
    assert "timed out" in kubectl.fails("wait", "job/later", "--for=condition=Finished", "--timeout=1s")


def test_runs_a_job_to_its_end(kubectl, job):
    kubectl("apply", "-f", "-", stdin=job("real", steps=[{"name": "say", "script": "echo hello"}]))
    kubectl("wait", "job/real", "--for=condition=Complete", "--timeout=60s")
    assert kubectl("get", "job", "real", "-o", "jsonpath={.status.phase} {.status.succeeded}") == "Succeeded 1"
    task = kubectl.json("get", "tasks", "--field-selector", "spec.jobRef.name=real")["items"][0]
    assert task["status"]["steps"][0]["exitCode"] == 0
    assert task["metadata"]["ownerReferences"][0]["name"] == "real"
    kubectl("delete", "job", "real", "--timeout=60s")
    kubectl("wait", "--for=delete", f"task/{task['metadata']['name']}", "--timeout=60s")


def test_deleting_a_running_job_cancels_it_first(kubectl, job, tmp_path):
    mark = tmp_path / "cleaned-up"
    steps = {"steps": [{"name": "long", "script": "sleep 600"}], "finally": [{"name": "clean", "script": f"touch {mark}"}]}
    kubectl("apply", "-f", "-", stdin=job("running", **steps))
    kubectl("wait", "job/running", "--for=jsonpath={.status.active}=1", "--timeout=60s")
    task = kubectl("get", "tasks", "-o", "name").strip()
    kubectl("wait", task, "--for=jsonpath={.status.phase}=Running", "--timeout=60s")
    kubectl("delete", "job", "running", "--timeout=90s")
    assert mark.exists(), "the finally steps ran before the Job went"
