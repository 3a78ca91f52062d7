"""The plain objects are objects of their forms: every member is one that the form has, with all
that it requires."""

from __future__ import annotations

import pytest

from a2a_proto.shapes.json_0_3 import json_0_3
from a2a_proto.shapes.protobuf_shapes import make_grammar
from a2a_proto.shapes.shape import Grammar, camel_case
from a2a_proxy.protocol.strict.plain_objects import PLAIN_MEMBERS, PLAIN_MEMBERS_0_3

FORMS = {
    "1.0": (make_grammar("1.0", False), PLAIN_MEMBERS),
    "0.3": (json_0_3(), PLAIN_MEMBERS_0_3),
    "0.3 in protobuf": (make_grammar("0.3", False), PLAIN_MEMBERS_0_3),
}


@pytest.mark.parametrize(("grammar", "plain"), FORMS.values(), ids=FORMS)
def test_plain_objects_have_all_required_members(grammar: Grammar, plain: dict[str, str]) -> None:
    for name in plain.keys() & grammar.shapes.keys():
        members = {camel_case(word.rstrip("!")) for word in plain[name].split()}
        assert grammar.shapes[name].required <= members, name


def test_every_plain_member_is_one_of_some_form() -> None:
    for name, text in PLAIN_MEMBERS.items():
        known = {
            each
            for grammar, _ in FORMS.values()
            for each in getattr(grammar.shapes.get(name), "members", ())
        }
        assert {camel_case(word.rstrip("!")) for word in text.split()} <= known, name
