"""The grammar of wrapped models."""

import re

import pytest

from harness.expression import Call, parse, split


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a,b", ["a", "b"]),
        (" a , b ", ["a", "b"]),
        ("a|f(1,2),b", ["a|f(1,2)", "b"]),
        ("a|f(b|g(1,2),3),c", ["a|f(b|g(1,2),3)", "c"]),
        ("a,", ["a", ""]),
        ("", [""]),
    ],
)
def test_a_sign_divides_a_text_outside_of_parentheses_only(text, parts):
    assert split(text, ",") == parts


@pytest.mark.parametrize(
    ("text", "model", "calls"),
    [
        ("sift", "sift", ()),
        ("odd(name.onnx", "odd(name.onnx", ()),
        ("sift|root", "sift", (Call("root"),)),
        (" sift | root ", "sift", (Call("root"),)),
        ("m.py:f|a(x/y.st)|b", "m.py:f", (Call("a", ("x/y.st",)), Call("b"))),
        ("a|f(b|g(c),1)|h()", "a", (Call("f", ("b|g(c)", "1")), Call("h"))),
    ],
)  # fmt: skip
def test_an_expression_is_a_model_and_its_wrappers_from_left_to_right(text, model, calls):
    assert parse(text) == (model, calls)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sift|", "'' in 'sift|' is not a wrapper"),
        ("|root", "names no model before"),
        ("a||b", "'' in 'a||b' is not a wrapper"),
        ("a|f(", "too few closing parentheses"),
        ("a|f(b))|g", "too few opening parentheses"),
        ("a|f)(|g", "too few opening parentheses"),
        ("a|f(1)(2)", "too few opening parentheses"),
        ("a|f(1)g", "is not a wrapper: write NAME or NAME"),
        ("a|f g", "is not a wrapper: write NAME or NAME"),
        ("a|(b)", "is not a wrapper"),
        ("a|f(1,,2)", "an argument is missing"),
        ("a|f(,)", "an argument is missing"),
    ],
)
def test_a_wrong_expression_says_what_is_wrong(text, told):
    with pytest.raises(ValueError, match=re.escape(told)):
        parse(text)


@pytest.mark.parametrize("call", [Call("root"), Call("f", ("a|g(1,2)", "3"))])
def test_a_call_is_read_as_it_is_written(call):
    assert parse(f"a|{call}") == ("a", (call,))
