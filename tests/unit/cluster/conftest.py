import pytest

from .fake_client import FakeClient


@pytest.fixture
def client():
    return FakeClient()
