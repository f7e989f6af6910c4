"""kubectl 1.37, unchanged, makes and changes things."""

import json
import stat

import pytest


def config(name, data, **metadata):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data})


def test_creates_core_objects_with_its_own_generators(kubectl, tmp_path):
    kubectl("create", "configmap", "settings", "--from-literal=level=high")
    assert kubectl.json("get", "cm", "settings")["data"] == {"level": "high"}
    (tmp_path / "key.bin").write_bytes(bytes(range(256)))
    kubectl("create", "secret", "generic", "token", "--from-literal=password=hunter2", "--from-file=key.bin")
    secret = kubectl.json("get", "secret", "token")
    assert secret["data"]["password"] == "aHVudGVyMg==" and secret["type"] == "Opaque"
    assert "hunter2" not in kubectl("describe", "secret", "token")
    kubectl("create", "serviceaccount", "robot")
    assert "robot" in kubectl("get", "sa")
    kubectl("create", "namespace", f"{kubectl.namespace}-b")
    assert "Active" in kubectl("get", "ns", f"{kubectl.namespace}-b")
    kubectl("delete", "namespace", f"{kubectl.namespace}-b", "--timeout=60s")
    kubectl("create", "quota", "limits", "--hard=secrets=10")
    kubectl("create", "priorityclass", f"{kubectl.namespace}-high", "--value=1000")
    kubectl("delete", "priorityclass", f"{kubectl.namespace}-high")
    assert "already exists" in kubectl.fails("create", "configmap", "settings")


def test_applies_again_and_changes_only_what_changed(kubectl):
    assert "created" in kubectl("apply", "-f", "-", stdin=config("a", {"x": "1", "y": "1"}))
    assert "unchanged" in kubectl("apply", "-f", "-", stdin=config("a", {"x": "1", "y": "1"}))
    kubectl("patch", "cm", "a", "-p", '{"data": {"theirs": "kept"}}')
    assert "configured" in kubectl("apply", "-f", "-", stdin=config("a", {"x": "2"}))
    assert kubectl.json("get", "cm", "a")["data"] == {"x": "2", "theirs": "kept"}


def test_applies_a_job_and_edits_what_may_be_edited(kubectl, job):
    kubectl("apply", "-f", "-", stdin=job("deploy", suspend=True))
    assert "configured" in kubectl("apply", "-f", "-", stdin=job("deploy", suspend=True, priority=7))
    assert kubectl.json("get", "job", "deploy")["spec"]["priority"] == 7
    refused = kubectl.fails("apply", "-f", "-", stdin=job("deploy", suspend=True, steps=[{"name": "other", "script": "true"}]))
    assert "spec.steps" in refused and "cannot be changed" in refused


def test_replaces_and_notices_that_somebody_was_faster(kubectl):
    kubectl("create", "-f", "-", stdin=config("a", {"x": "1"}))
    old = kubectl.json("get", "cm", "a")
    kubectl("replace", "-f", "-", stdin=config("a", {"x": "2"}))
    assert kubectl.json("get", "cm", "a")["data"] == {"x": "2"}
    old["data"] = {"x": "late"}
    assert "the object has been modified" in kubectl.fails("replace", "-f", "-", stdin=json.dumps(old))


def test_edits_with_an_editor(kubectl, job, tmp_path):
    kubectl("create", "-f", "-", stdin=job("draft", suspend=True))
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/suspend: true/suspend: true\\n  priority: 3/' \"$1\"\n")
    editor.chmod(editor.stat().st_mode | stat.S_IEXEC)
    assert "edited" in kubectl("edit", "job", "draft", env={"KUBE_EDITOR": str(editor)})
    assert kubectl.json("get", "job", "draft")["spec"]["priority"] == 3


def test_shows_a_diff(kubectl):
    kubectl("apply", "-f", "-", stdin=config("a", {"x": "before"}))
    kubectl("diff", "-f", "-", stdin=config("a", {"x": "before"}))
    diff = kubectl.fails("diff", "-f", "-", stdin=config("a", {"x": "after"}))
    assert "-  x: before" in diff and "+  x: after" in diff


def test_labels_and_annotates(kubectl, job):
    kubectl("create", "-f", "-", stdin=job("marked", suspend=True))
    kubectl("label", "job", "marked", "tier=web")
    assert "overwrite" in kubectl.fails("label", "job", "marked", "tier=db")
    kubectl("label", "job", "marked", "tier=db", "--overwrite")
    kubectl("annotate", "job", "marked", "note=hello world")
    metadata = kubectl.json("get", "job", "marked")["metadata"]
    assert metadata["labels"]["tier"] == "db" and metadata["annotations"]["note"] == "hello world"
    kubectl("label", "job", "marked", "tier-")
    assert "tier" not in kubectl.json("get", "job", "marked")["metadata"].get("labels", {})


def test_patches_in_all_three_ways(kubectl, job):
    kubectl("create", "-f", "-", stdin=job("j", suspend=True))
    kubectl("patch", "job", "j", "--type=merge", "-p", '{"spec": {"priority": 1}}')
    kubectl("patch", "job", "j", "--type=json", "-p", '[{"op": "test", "path": "/spec/priority", "value": 1}, {"op": "replace", "path": "/spec/priority", "value": 2}]')
    assert kubectl.json("get", "job", "j")["spec"]["priority"] == 2
    assert "test" in kubectl.fails("patch", "job", "j", "--type=json", "-p", '[{"op": "test", "path": "/spec/priority", "value": 1}]')
    # strategic merge is for core kinds; lists with a key are merged
    kubectl("create", "serviceaccount", "robot")
    kubectl("patch", "sa", "robot", "-p", '{"secrets": [{"name": "a"}]}')
    kubectl("patch", "sa", "robot", "-p", '{"secrets": [{"name": "b"}]}')
    assert {s["name"] for s in kubectl.json("get", "sa", "robot")["secrets"]} == {"a", "b"}
    kubectl.fails("patch", "job", "j", "--type=strategic", "-p", '{"spec": {"priority": 1}}')


def test_tries_without_doing(kubectl, job):
    assert "server dry run" in kubectl("apply", "-f", "-", "--dry-run=server", stdin=job("never"))
    kubectl.fails("get", "job", "never")
    kubectl("create", "configmap", "never", "--dry-run=server")
    kubectl.fails("get", "cm", "never")
    assert "spec.steps" in kubectl.fails("create", "-f", "-", "--dry-run=server", stdin=job("never", steps=[{"script": "no name"}]))
    kubectl("create", "configmap", "kept")
    kubectl("delete", "cm", "kept", "--dry-run=server")
    kubectl("get", "cm", "kept")


def test_applies_a_kustomize_folder(kubectl, tmp_path, job):
    folder = tmp_path / "overlay"
    folder.mkdir()
    (folder / "job.yaml").write_text(job("base", suspend=True))
    (folder / "kustomization.yaml").write_text(
        "resources: [job.yaml]\nnamePrefix: prod-\nlabels: [{pairs: {env: prod}}]\n"
        "configMapGenerator: [{name: settings, literals: [level=high]}]\n"
    )
    kubectl("apply", "-k", folder)
    assert kubectl.json("get", "job", "prod-base")["metadata"]["labels"]["env"] == "prod"
    assert "prod-settings-" in kubectl("get", "cm", "-l", "env=prod", "-o", "name")
    kubectl("delete", "-k", folder, "--timeout=60s")


def test_makes_names(kubectl, job):
    manifest = json.loads(job("x", suspend=True))
    manifest["metadata"] = {"generateName": "run-"}
    first = kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(manifest)).strip()
    second = kubectl("create", "-f", "-", "-o", "name", stdin=json.dumps(manifest)).strip()
    assert first != second and first.startswith("job.prow.windows/run-")


def owned(kubectl, policy):
    """An owner and what it owns, after the owner was deleted in this way."""
    kubectl("create", "configmap", "owner")
    uid = kubectl.json("get", "cm", "owner")["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}
    kubectl("create", "-f", "-", stdin=config("owned", {}, ownerReferences=[reference]))
    kubectl("delete", "cm", "owner", f"--cascade={policy}", "--timeout=60s")


@pytest.mark.parametrize("policy", ["background", "foreground"])
def test_deletes_what_belongs_to_a_deleted_object(kubectl, policy):
    owned(kubectl, policy)
    kubectl("wait", "--for=delete", "cm/owned", "--timeout=60s")


def test_leaves_orphans(kubectl):
    owned(kubectl, "orphan")
    assert not kubectl.json("get", "cm", "owned")["metadata"].get("ownerReferences")


def test_deletes_by_selector_and_all(kubectl):
    for name in ["a", "b", "c"]:
        kubectl("create", "configmap", name)
    kubectl("label", "cm", "a", "go=yes")
    kubectl("delete", "cm", "-l", "go=yes")
    assert "configmap/a" not in kubectl("get", "cm", "-o", "name")
    kubectl("delete", "cm", "--all")
    assert kubectl("get", "cm", "-o", "name") == ""


def test_a_namespace_takes_everything_with_it(kubectl, job):
    other = f"{kubectl.namespace}-gone"
    kubectl("create", "namespace", other)
    kubectl("create", "configmap", "a", "-n", other)
    kubectl("create", "-f", "-", "-n", other, stdin=job("j", suspend=True))
    kubectl("delete", "namespace", other, "--timeout=60s")
    assert "not found" in kubectl.fails("get", "ns", other)
