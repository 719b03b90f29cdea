import pickle

import pytest

import tensorstore_py as ts

SECRET = "do-not-print-me"
STATIC = {
    "type": "static",
    "access_key_id": "AKIA",
    "secret_access_key": SECRET,
    "session_token": f"{SECRET}-2",
}


def test_values():
    context = ts.Context({"aws_credentials": STATIC, "s3_request_concurrency": {"limit": 5}})
    found = context["aws_credentials"].value
    assert (found.access_key_id, found.secret_access_key) == ("AKIA", SECRET)
    assert context["s3_request_concurrency"].value.limit == 5
    assert ts.Context()["aws_credentials"].value.type == "default"


def test_secrets_are_never_printed():
    context = ts.Context({"aws_credentials": STATIC})
    resource = context["aws_credentials"]
    assert context.spec is not None
    for text in (
        repr(resource),
        str(resource.to_json()),
        str(resource.to_json(include_defaults=True)),
        repr(resource.value),
        f"{resource.value}",
        repr(context.spec),
        str(context.spec.to_json(include_defaults=True)),
        str(pickle.dumps(context)),
        str(pickle.dumps(resource)),
        str(pickle.dumps(context.spec)),
    ):
        assert SECRET not in text


def test_a_pickle_of_static_credentials_asks_the_environment():
    resource = ts.Context({"aws_credentials": STATIC})["aws_credentials"]
    assert pickle.loads(pickle.dumps(resource)).value.type == "environment"
    plain = ts.Context({"aws_credentials": {"type": "profile", "profile": "p"}})["aws_credentials"]
    assert pickle.loads(pickle.dumps(plain)).value.profile == "p"


@pytest.mark.parametrize(
    ("json", "member"),
    [
        ({**STATIC, "secret_access_key": [SECRET]}, "secret_access_key"),
        ({**STATIC, "type": "profile"}, "access_key_id"),
        ({**STATIC, "secret_acces_key": SECRET}, "secret_acces_key"),
        ({"type": "static", "access_key_id": "A"}, "secret_access_key"),
        ({"type": "anonymous", "profile": SECRET}, "profile"),
        ({"type": "unheard"}, "type"),
        ({"type": 3}, "type"),
        ({}, "type"),
    ],
)
def test_errors_name_the_member_and_show_no_value(json, member):
    with pytest.raises(ts.SpecError) as caught:
        ts.Context({"aws_credentials": json})
    assert caught.value.path == ("aws_credentials", member)
    assert SECRET not in str(caught.value)
