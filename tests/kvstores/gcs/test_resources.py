import tensorstore_py as ts


def test_values():
    context = ts.Context(
        {
            "gcs_user_project": {"project_id": "lab"},
            "gcs_request_retries": {"max_retries": 2},
            "gcs_request_concurrency": {"limit": 5},
            "experimental_gcs_rate_limiter": {"read_rate": 7},
        }
    )
    assert context["gcs_user_project"].value.project_id == "lab"
    assert context["gcs_request_retries"].value.max_retries == 2
    assert context["gcs_request_concurrency"].value.limit == 5
    assert context["experimental_gcs_rate_limiter"].value.read.per_second == 7
