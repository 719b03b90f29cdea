import pytest

from tensorstore_py.errors import DataLossError
from tensorstore_py.kvstores.s3.xml_answer import first_text, local_name, named, parse_xml

BOMB = (
    b"""<!DOCTYPE a [<!ENTITY x "ha"><!ENTITY y "&x;&x;&x;&x;">]><Error><Code>&y;</Code></Error>"""
)


@pytest.mark.parametrize("space", [b"", b' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'])
def test_names_are_found_with_or_without_a_namespace(space):
    root = parse_xml(
        b"\n \n<?xml version='1.0'?><A%b><B><C>1&amp;2</C></B><C>3</C></A>" % space, "A"
    )

    assert local_name(root) == "A"
    assert root.findtext(named(root, "C")) == "3"
    assert first_text(root, "C") == "1&2"
    assert first_text(root, "D") is None


@pytest.mark.parametrize("length", range(len(b"<A><B>1</B></A>")))
def test_no_beginning_of_a_document_is_one(length):
    with pytest.raises(DataLossError, match="no whole XML document"):
        parse_xml(b"<A><B>1</B></A>"[:length])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (BOMB, "declares"),
        (BOMB.decode().encode("utf-16"), "no whole"),
        (b'<?xml version="1.0" encoding="utf-16"?><A/>x', "no whole"),
        (b"<A>&undeclared;</A>", "no whole"),
        (b"<A>\xff</A>", "no whole"),
        (b"<B></B>", "about <B> instead of <A>"),
        (b"<A></A><A></A>", "no whole"),
    ],
)
def test_what_services_do_not_send_is_refused(body, said):
    with pytest.raises(DataLossError, match=said):
        parse_xml(body, "A")
