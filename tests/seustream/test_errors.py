"""Errors that users cause have messages, a hint, and a count."""

from __future__ import annotations

import pytest

from seustream.errors import Error, InputError, OutputError, QueryError, UserError


def test_errors_are_the_users() -> None:
    error = InputError(["a", "b"], hint="c")
    assert isinstance(error, UserError)
    assert (error.messages, error.hint, error.total, str(error)) == (("a", "b"), "c", 2, "a\nb")


def test_one_message_is_a_list_of_one_and_a_count_may_be_more() -> None:
    assert UserError("ab").messages == ("ab",)
    assert InputError(["a", "b"], total=9).total == 9
    assert (UserError("a").hint, UserError("a").line) == (None, None)


def test_a_caller_catches_all_of_them_at_once() -> None:
    errors = [UserError("a"), InputError("a"), OutputError("a"), QueryError("a", "b", 2, 3)]
    for error in errors:
        with pytest.raises(Error) as caught:
            raise error
        assert str(caught.value) == "a"
    assert (errors[-1].hint, errors[-1].line, errors[-1].column) == ("b", 2, 3)
