from tensorstore_py._interface.statistics import StorageStatistics


def test_it_is_equal_to_its_like():
    one = StorageStatistics(not_stored=True)

    assert one == StorageStatistics(not_stored=True)
    assert one != StorageStatistics(not_stored=True, fully_stored=False)
    assert one != (True, None)
    assert repr(one) == "TensorStore.StorageStatistics(not_stored=True, fully_stored=None)"
