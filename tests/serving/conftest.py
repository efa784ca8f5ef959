"""One model and one server for the tests of this folder."""

import os

import pytest
from serving import running, saved_models

from official_bert.serving import model_versions


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """Return a folder with version 1 of the model; tests must not change it."""
    folder = tmp_path_factory.mktemp("answers")
    saved_models.write(folder, 1)
    return folder


@pytest.fixture(scope="session")
def versions(model_folder):
    """Return the loaded model."""
    return model_versions.open_model(saved_models.NAME, str(model_folder))


@pytest.fixture(scope="session")
def own_url(versions):
    """Return the URL of this project's server."""
    with running.running(versions, max_request_bytes=4 << 20) as url:
        yield url


@pytest.fixture(
    scope="session",
    params=["own", "tf_serving"] if os.environ.get("TF_SERVING_URL") else ["own"],
)
def url(request):
    """Return the URL of this project's server, and of TF Serving if it is running.

    `saved_models.py` explains how to start TF Serving.
    """
    if request.param == "tf_serving":
        return os.environ["TF_SERVING_URL"]
    return request.getfixturevalue("own_url")
