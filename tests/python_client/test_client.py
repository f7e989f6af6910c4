"""The Python `kubernetes` client, unchanged: typed core objects, custom objects, watches, dynamic discovery."""

import base64

import pytest
from kubernetes import client, config, dynamic, watch

JOBS = {"group": "prow.windows", "version": "v1", "plural": "jobs"}


@pytest.fixture
def api(cluster):
    return config.new_client_from_config(cluster.kubeconfig)


def job(name, **spec):
    spec.setdefault("steps", [{"name": "run", "script": "echo hello"}])
    return {"apiVersion": "prow.windows/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def test_typed_core_objects(api, namespace):
    core = client.CoreV1Api(api)
    core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a"), data={"k": "v"}))
    core.patch_namespaced_config_map("a", namespace, {"data": {"more": "w"}})
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "v", "more": "w"}
    core.create_namespaced_secret(namespace, client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"p": "x"}))
    assert base64.b64decode(core.read_namespaced_secret("s", namespace).data["p"]) == b"x"
    assert [c.metadata.name for c in core.list_namespaced_config_map(namespace, limit=1).items] == ["a"]
    core.delete_namespaced_config_map("a", namespace)
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_config_map("a", namespace)
    assert missing.value.status == 404


def test_runs_a_job_and_watches_it_to_its_end(api, namespace):
    custom = client.CustomObjectsApi(api)
    custom.create_namespaced_custom_object(namespace=namespace, body=job("hello"), **JOBS)
    for event in watch.Watch().stream(custom.list_namespaced_custom_object, namespace=namespace, timeout_seconds=60, **JOBS):
        if event["object"].get("status", {}).get("phase") == "Succeeded":
            break
    status = custom.get_namespaced_custom_object(namespace=namespace, name="hello", **JOBS)["status"]
    assert status["succeeded"] == 1
    assert {c["type"]: c["status"] for c in status["conditions"]}["Complete"] == "True"


def test_a_watch_goes_on_where_it_was_left(api, namespace):
    core = client.CoreV1Api(api)
    revision = core.list_namespaced_config_map(namespace).metadata.resource_version
    for name in ["a", "b"]:
        core.create_namespaced_config_map(namespace, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name)))
    seen = []
    for event in watch.Watch().stream(core.list_namespaced_config_map, namespace, resource_version=revision, timeout_seconds=60):
        seen.append((event["type"], event["object"].metadata.name))
        if len(seen) == 2:
            break
    assert seen == [("ADDED", "a"), ("ADDED", "b")]


def test_dynamic_discovery(api, namespace):
    jobs = dynamic.DynamicClient(api).resources.get(api_version="prow.windows/v1", kind="Job")
    jobs.create(body=job("found", suspend=True), namespace=namespace)
    assert jobs.get(name="found", namespace=namespace).spec.suspend is True
    jobs.patch(name="found", namespace=namespace, body={"spec": {"priority": 4}}, content_type="application/merge-patch+json")
    assert jobs.get(name="found", namespace=namespace).spec.priority == 4


def test_an_invalid_job_names_every_mistake(api, namespace):
    wrong = job("wrong", steps=[{"name": "a", "script": "true", "shell": "fish"}, {"name": "a", "script": "true"}])
    with pytest.raises(client.ApiException) as refused:
        client.CustomObjectsApi(api).create_namespaced_custom_object(namespace=namespace, body=wrong, **JOBS)
    assert refused.value.status == 422
    for path in ["spec.steps[0].shell", "spec.steps[1].name"]:
        assert path in refused.value.body
