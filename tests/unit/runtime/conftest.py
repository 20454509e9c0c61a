import pytest

from ..cluster.fake_client import FakeClient  # noqa: TID252 - one stand-in for both layers' tests


@pytest.fixture
def client():
    return FakeClient()
