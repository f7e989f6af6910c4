"""kubectl 1.37, unchanged, looks at what is there."""

import json


def test_lists_the_kinds(kubectl):
    wide = kubectl("api-resources")
    for line in ["jobs", "tasks", "nodes", "queues", "targets", "configmaps", "secrets", "namespaces", "events", "leases"]:
        assert any(row.split()[0] == line for row in wide.splitlines()[1:]), f"{line} is missing:\n{wide}"
    short = {row.split()[1] for row in wide.splitlines() if "prow.windows/v1" in row}
    assert {"pj", "pt", "pn", "pq", "ptg"} <= short
    ours = kubectl("api-resources", "--api-group=prow.windows", "-o", "name").split()
    assert "jobs.prow.windows" in ours
    assert "prow.windows/v1" in kubectl("api-versions")


def test_explains_fields_down_to_the_steps(kubectl):
    text = kubectl("explain", "job.spec.steps", "--api-version=prow.windows/v1")
    for field in ["name", "script", "retryStrategy", "exitCodes"]:
        assert field in text
    assert "trying again" in kubectl("explain", "job.spec.steps.exitCodes.retry", "--api-version=prow.windows/v1").lower()
    assert "KIND:       Job" in kubectl("explain", "jobs", "--recursive", "--api-version=prow.windows/v1")
    assert "data" in kubectl("explain", "configmap")
    assert "does not exist" in kubectl.fails("explain", "job.spec.stepz", "--api-version=prow.windows/v1")


def test_prints_in_every_format(kubectl, job):
    kubectl("create", "-f", "-", stdin=job("one", suspend=True))
    assert kubectl("get", "pj", "one").splitlines()[0].split()[:2] == ["NAME", "PHASE"]
    wide = kubectl("get", "jobs.prow.windows", "-o", "wide")
    assert {"QUEUE", "WAITING", "MESSAGE"} <= set(wide.splitlines()[0].split())
    assert "suspend: true" in kubectl("get", "job", "one", "-o", "yaml")
    assert kubectl.json("get", "job", "one")["spec"]["steps"][0]["name"] == "run"
    assert kubectl("get", "job", "one", "-o", "jsonpath={.spec.steps[0].name}") == "run"
    assert kubectl("get", "job", "-o", "name").strip() == "job.prow.windows/one"
    assert kubectl("get", "job", "-o", "custom-columns=N:.metadata.name,Q:.spec.queueName").split() == ["N", "Q", "one", "default"]
    assert kubectl("get", "job", "-o", "go-template={{range .items}}{{.metadata.name}}{{end}}") == "one"
    assert "one" in kubectl("get", "prow")
    assert "one" in kubectl("get", "jobs", "--show-labels", "-A")


def test_selects_by_labels_and_fields(kubectl, job):
    for name, tier in [("a", "web"), ("b", "web"), ("c", "db")]:
        manifest = json.loads(job(name, suspend=True))
        manifest["metadata"]["labels"] = {"tier": tier, name: "yes"}
        kubectl("create", "-f", "-", stdin=json.dumps(manifest))

    def names(*args):
        return [line.split("/")[1] for line in kubectl("get", "jobs", "-o", "name", *args).split()]

    assert names("-l", "tier=web") == ["a", "b"]
    assert names("-l", "tier!=web") == ["c"]
    assert names("-l", "tier in (web,db),!a") == ["b", "c"]
    assert names("-l", "a") == ["a"]
    assert names("--field-selector", "metadata.name=b") == ["b"]
    assert names("--field-selector", "metadata.name!=b,spec.queueName=default") == ["a", "c"]
    refused = kubectl.fails("get", "jobs", "--field-selector", "spec.nothing=1")
    assert "spec.nothing" in refused


def test_reads_long_lists_in_chunks_of_one_snapshot(kubectl):
    for number in range(7):
        kubectl("create", "configmap", f"part-{number}")
    names = kubectl("get", "configmaps", "--chunk-size=2", "-o", "name").split()
    assert [n for n in names if "part-" in n] == [f"configmap/part-{n}" for n in range(7)]
    assert len(kubectl("get", "configmaps", "--chunk-size=2").splitlines()) >= 8


def test_describes_and_shows_events(kubectl, job):
    kubectl("create", "-f", "-", stdin=job("told", suspend=True))
    text = kubectl("describe", "job.prow.windows", "told")
    assert "Name:         told" in text and "Steps:" in text and "Events:" in text
    kubectl("events")
    kubectl("events", "--for", "job.prow.windows/told")
    kubectl("get", "events")


def test_asks_about_itself(kubectl):
    assert kubectl("auth", "can-i", "create", "jobs.prow.windows").strip() == "yes"
    assert kubectl("auth", "can-i", "delete", "nodes.prow.windows/web01").strip() == "yes"
    who = kubectl("auth", "whoami")
    assert "admin" in who and "system:masters" in who
    assert kubectl("auth", "can-i", "*", "*", "--all-namespaces").strip() == "yes"


def test_reads_raw_paths(kubectl):
    assert json.loads(kubectl("get", "--raw", "/version"))["major"] == "1"
    assert kubectl("get", "--raw", "/healthz") == "ok"
    assert kubectl("get", "--raw", "/readyz") == "ok"
    assert "# TYPE" in kubectl("get", "--raw", "/metrics")
    assert json.loads(kubectl("get", "--raw", "/apis/prow.windows/v1"))["kind"] == "APIResourceList"
    assert "gitVersion" in kubectl("version", "-o", "json")


def test_says_that_nothing_is_there(kubectl):
    assert "No resources found" in kubectl.run("get", "jobs").stderr
    assert 'jobs.prow.windows "ghost" not found' in kubectl.fails("get", "job.prow.windows", "ghost")
    assert kubectl("get", "job", "ghost", "--ignore-not-found") == ""
