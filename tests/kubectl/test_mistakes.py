"""What users get wrong is refused with the path, what is wrong, and what to do."""

import json

import pytest


def create(kubectl, manifest):
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    return kubectl.fails("create", "-f", "-", stdin=text)


def manifest(step=None, name="wrong", **spec):
    spec.setdefault("steps", [{"name": "run", "script": "true", **(step or {})}])
    return {"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def test_a_misspelt_field(kubectl):
    said = create(kubectl, manifest({"shel": "bash"}))
    assert "spec.steps[0].shel" in said and 'did you mean "shell"' in said


def test_a_wrong_type(kubectl):
    said = create(kubectl, manifest({"timeoutSeconds": "ten"}))
    assert "spec.steps[0].timeoutSeconds" in said


def test_a_yaml_trap_says_quote_it(kubectl):
    text = "apiVersion: prow.windows/v1\nkind: Job\nmetadata: {name: wrong}\nspec: {steps: [{name: run, script: 'true', env: [{name: V, value: 1.10}]}]}\n"
    said = create(kubectl, text)
    assert "spec.steps[0].env[0].value" in said and "quote" in said


def test_a_step_name_twice(kubectl):
    said = create(kubectl, manifest(steps=[{"name": "run", "script": "true"}, {"name": "run", "script": "true"}]))
    assert "spec.steps[1].name" in said and "run" in said


def test_a_missing_field(kubectl):
    said = create(kubectl, manifest(steps=[{"script": "true"}]))
    assert "spec.steps[0].name" in said


def test_an_unknown_shell(kubectl):
    said = create(kubectl, manifest({"shell": "fish"}))
    assert "spec.steps[0].shell" in said and "fish" in said


@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dot.ted", "x" * 64])
def test_a_name_that_is_no_dns_label(kubectl, name):
    assert "metadata.name" in create(kubectl, manifest(name=name))


def test_an_object_of_2_mib(kubectl):
    big = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "big"}, "data": {"x": "y" * (2 << 20)}}
    said = create(kubectl, big)
    assert "limit" in said.lower() or "too large" in said.lower()
    assert "1048576" in said or "1 MiB" in said


def test_a_body_that_is_no_yaml(kubectl, cluster, tmp_path):
    # kubectl itself refuses it, so it is sent as a plain body
    (tmp_path / "bad.yaml").write_text("apiVersion: v1\nkind: [unclosed\nmetadata: {name: x}\n")
    path = f"/api/v1/namespaces/{kubectl.namespace}/configmaps"
    said = kubectl.fails("create", "--raw", path, "-f", tmp_path / "bad.yaml")
    assert "line" in said or "yaml" in said.lower() or "json" in said.lower()


def test_several_mistakes_are_told_at_once(kubectl):
    said = create(kubectl, manifest(completions=-1, steps=[{"name": "a", "script": "true", "shell": "fish"}, {"name": "a", "script": "true"}]))
    for path in ["spec.completions", "spec.steps[0].shell", "spec.steps[1].name"]:
        assert path in said, said


def test_what_is_not_supported_yet_is_refused_and_not_ignored(kubectl):
    said = create(kubectl, manifest({"image": "mcr.microsoft.com/windows/nanoserver"}))
    assert "spec.steps[0].image" in said and "not supported yet" in said


def test_a_step_that_does_nothing_or_two_things(kubectl):
    assert "spec.steps[0]" in create(kubectl, manifest(steps=[{"name": "idle"}]))
    assert "spec.steps[0]" in create(kubectl, manifest({"command": ["true"]}))


def test_a_target_without_a_mode(kubectl):
    said = create(kubectl, manifest(targetRef={"name": "all"}))
    assert "spec.completionMode" in said
