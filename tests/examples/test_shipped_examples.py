"""Every file under examples/ is applied, and what it runs succeeds."""

import pathlib

import pytest

EXAMPLES = pathlib.Path(__file__).resolve().parent.parent.parent / "examples"
# those for Windows run in tests/windows, against an agent there
WINDOWS = EXAMPLES / "windows"
FOLDERS = sorted({path.parent for path in EXAMPLES.rglob("*.yaml")} - {WINDOWS})


@pytest.mark.parametrize("file", sorted(WINDOWS.glob("*.yaml")), ids=lambda file: file.name)
def test_an_example_for_windows_is_accepted(kubectl, file):
    kubectl("apply", "--dry-run=server", "-f", file)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_example_runs_to_its_end(prow, folder):
    prow("apply", "-f", folder)
    prow("wait", "jobs", "--all", "--for=condition=Finished", "--timeout=90s")
    assert set(prow("get", "jobs", "-o", "jsonpath={.items[*].status.phase}").split()) == {"Succeeded"}, prow("describe", "jobs")


def test_the_quickstart_does_what_it_says(prow):
    folder = next(folder for folder in FOLDERS if folder.name == "quickstart")
    prow("apply", "-f", folder)
    prow("wait", "jobs", "--all", "--for=condition=Finished", "--timeout=90s")
    said = prow("logs", "deploy")
    assert "[prepare] preparing release 1.4.2 on agent-" in said, "a value from the ConfigMap"
    assert "correct-horse-battery" not in said and "[sign-in] signing in with ***" in said, "a masked secret"
    assert "[install] installing build 1.4.2-" in said, "an output handed on"
    assert "[start] the service is not ready yet" in said and "[start] the service runs" in said, "a second try"
    task = prow("get", "tasks", "--field-selector", "spec.jobRef.name=deploy", "-o", "name").strip()
    steps = prow("get", task, "-o", "jsonpath={range .status.steps[*]}{.name}={.phase}/{.reason}/{.attempts} {end}")
    assert "start=Succeeded//2" in steps and "verify=Skipped/Compliant" in steps, steps
    assert prow("get", "job", "deploy", "-o", "jsonpath={.status.outputs.build}").startswith("1.4.2-")
    assert prow("get", "job", "everywhere", "-o", "jsonpath={.status.succeeded}") == "2"
