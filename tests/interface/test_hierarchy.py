import pytest

from tensorstore_py._interface.hierarchy import HierarchyFormat
from tensorstore_py.errors import UnsupportedError


class Plain(HierarchyFormat):
    """A format with one document a node, and nothing else."""

    format_id = driver = "plain"
    array_key = group_key = attributes_key = "node.json"

    def kind(self, key, document):
        return "array" if "shape" in document else "group"

    def new_group(self, attributes):
        return {self.group_key: attributes}

    def attributes(self, document):
        return document or {}

    def with_attributes(self, document, attributes):
        return attributes

    def new_array(self, spec, attributes, *, labelled):
        return spec, attributes

    def type_name(self, document):
        return "bytes"


def test_a_key_is_asked_for_once():
    assert Plain().node_keys == ("node.json",)


def test_what_a_format_need_not_have():
    form = Plain()

    assert form.consolidated({}) is None
    with pytest.raises(UnsupportedError, match='"plain" has no consolidated metadata'):
        form.with_consolidated(None, {})
    form.check_name("anything")
    assert form.may_be_node("anything")


@pytest.mark.parametrize(
    ("shape", "summary"),
    [([2, 3], "(2, 3) bytes"), ([4], "(4,) bytes"), ([], "() bytes"), ("x", '"x" bytes')],
)
def test_an_array_in_a_few_words(shape, summary):
    assert Plain().summary({"shape": shape}) == summary
