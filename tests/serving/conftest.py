"""One model and one server for the tests of this folder."""

import os

import pytest
from serving import running, saved_models

from official_bert.serving import model_versions


@pytest.fixture(scope="session")
def model_folder(tmp_path_factory):
    """A folder with version 1 of the model; nobody changes it."""
    folder = tmp_path_factory.mktemp("answers")
    saved_models.write(folder, 1)
    return folder


@pytest.fixture(scope="session")
def versions(model_folder):
    """The model, loaded."""
    return model_versions.open_model(saved_models.NAME, str(model_folder))


@pytest.fixture(scope="session")
def own_url(versions):
    """The URL of this project's server."""
    with running.running(versions, max_request_bytes=4 << 20) as url:
        yield url


@pytest.fixture(
    scope="session",
    params=["own", "tf_serving"] if os.environ.get("TF_SERVING_URL") else ["own"],
)
def url(request):
    """The URL of this project's server; of TF Serving too where there is one.

    `saved_models.py` says how to start it.
    """
    if request.param == "tf_serving":
        return os.environ["TF_SERVING_URL"]
    return request.getfixturevalue("own_url")
