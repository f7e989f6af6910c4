"""Every manifest shown in the docs, and every file under examples/, is accepted by a real server."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
MANIFEST = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown():
    """Each whole manifest on a page; snippets without apiVersion show a part and are passed over."""
    for page in PAGES:
        for number, text in enumerate(MANIFEST.findall(page.read_text()), start=1):
            if "apiVersion:" in text:
                yield pytest.param(text, id=f"{page.relative_to(ROOT)}#{number}")


@pytest.mark.parametrize("text", shown())
def test_a_manifest_in_the_docs_is_accepted(kubectl, text):
    kubectl("apply", "--dry-run=server", "-f", "-", stdin=text)


@pytest.mark.parametrize(
    "file", [pytest.param(f, id=str(f.relative_to(ROOT))) for f in sorted((ROOT / "examples").rglob("*.yaml"))]
)
def test_an_example_is_accepted(kubectl, file):
    kubectl("apply", "--dry-run=server", "-f", file)


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in PAGES])
def test_a_link_to_a_file_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
