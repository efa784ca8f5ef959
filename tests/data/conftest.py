import pytest

from official_bert.tokenization.full import FullTokenizer


@pytest.fixture(scope="session")
def mini_folder(pytestconfig):
    return pytestconfig.rootpath / "tests" / "fixtures" / "mini"


@pytest.fixture(scope="session")
def mini_tokenizer(mini_folder):
    return FullTokenizer(str(mini_folder / "vocab.txt"))
