"""Every registered descriptor and protocol keeps the laws; a third party's are tested alike."""

import pytest

from harness import loading, plugins, registry
from harness.contracts import check_descriptor, check_protocol
from harness.data import weights


def broken(laws):
    return [f"{law.name}: {law.detail}" for law in laws if not law.passed]


@pytest.mark.parametrize("name", registry.names("descriptors"))
def test_a_registered_descriptor_keeps_the_laws(name):
    try:
        descriptor = plugins.model(name)
    except RuntimeError as error:
        if not isinstance(error.__cause__, weights.NotHere):
            raise
        pytest.skip(f"published weights are not here: {name}")
    assert not broken(check_descriptor(descriptor))


@pytest.mark.parametrize("name", registry.names("protocols"))
def test_a_registered_protocol_keeps_the_laws(name):
    (protocol,) = loading.load_protocols(name, {})
    assert not broken(check_protocol(protocol))


@pytest.mark.data
@pytest.mark.parametrize("scene", ["liberty", "notredame", "yosemite"])
def test_a_descriptor_with_published_weights_keeps_the_laws(shared, monkeypatch, scene):
    monkeypatch.setenv("HARNESS_WEIGHTS", str(shared / "checkpoints/tfeat"))
    assert not broken(check_descriptor(plugins.model(f"tfeat.{scene}")))
