"""jq expressions of Karta definitions: what they yield, which are refused, and that none can hold the controller up."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queues.grouping.karta.jq import (
    MAX_EXPRESSION_LENGTH,
    Evaluator,
    JqError,
    JqOverrunError,
    check,
    evaluate,
    first_value,
)
from queues.grouping.karta.words import HOST, LOOPS, TIME, refused_words

DOUBLINGS = "|".join(["(., .)"] * 40)
ENDLESS = f"[{DOUBLINGS}] | length"


@pytest.fixture
def evaluator() -> Iterator[Evaluator]:
    evaluator_under_test = Evaluator(deadline_s=0.5)
    yield evaluator_under_test
    evaluator_under_test.close()


def values_of(evaluator: Evaluator, expression: str) -> list[Any]:
    return evaluator.ask({"expression": expression, "document": {"a": 3}})


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        (".a.b", [1]),
        ('.a["b"]', [1]),
        (".c[0]", [5]),
        (".c[-1:]", [[6]]),
        (".c[]", [5, 6]),
        (".c | length", [2]),
        (".c | map(. + 1) | add", [13]),
        (".x // 7", [7]),
        (".x.y.z", [None]),
        ('.k == "v" and .a.b < 2', [True]),
        (".c[] | select(. == 6)", [6]),
        ("(.a | keys)[0]", ["b"]),
        ('."k"', ["v"]),
        ('if .a | has("b") then "yes" else "no" end', ["yes"]),
        ('.k | startswith("v")', [True]),
        ("[.a | to_entries[] | .key]", [["b"]]),
        (".k[0]?", []),
        ('"\\(.k)-\\(.c[1])"', ["v-6"]),
    ],
)
def test_expressions(expression: str, values: list[Any]) -> None:
    assert evaluate(expression, {"a": {"b": 1}, "c": [5, 6], "k": "v"}) == values


def test_the_first_value_is_the_first_that_is_not_null() -> None:
    assert first_value(".[]", [None, False, 1]) is False
    assert first_value(".[]", [None]) is None
    assert first_value("empty", 1) is None


@pytest.mark.parametrize("expression", ["", ".[", ".a =", ".a..b", "no_such_word", "$nobody"])
def test_what_is_no_jq_is_refused_with_the_expression(expression: str) -> None:
    with pytest.raises(JqError) as caught:
        check(expression)
    assert str(caught.value).startswith(f"jq expression {expression!r}: jq: error: ")


@pytest.mark.parametrize("word", sorted(LOOPS | HOST | TIME))
def test_words_of_the_host_of_time_and_of_endless_loops_are_refused(word: str) -> None:
    for program in (
        word,
        f"[.a, {word}]",
        f'"text \\(1 + ({word}))"',
        f"{{a: {word}}}",
        f".a|{word}",
    ):
        with pytest.raises(JqError) as caught:
            check(program)
        assert str(caught.value) == f"unsupported jq expression {program!r}: {word} may not be used"


@pytest.mark.parametrize(
    "program",
    [
        '"env"', '.["while"]', ".env", ".spec.input.range", "{env: 1}", "{env}", '{"a": 1, env}', '"say \\"env\\""',
        '"\\(.env)"', '."input"', ". as {env: $x} | $x", "..", "getpath([\"a\"])", ".environment", ".a | inside([1])",
    ],
)  # fmt: skip
def test_field_names_and_text_may_be_any_word(program: str) -> None:
    assert refused_words(program) == []


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("{env: env}", ["env"]),
        ("{a: 1 | env.HOME}", ["env"]),
        ("{(env.HOME): 1}", ["env"]),
        ('{"\\(env.HOME)": 1}', ["env"]),
        ('"\\("\\($ENV)")" + "x"', ["$ENV"]),
        ("{$ENV}", ["$ENV"]),
        ("[env.HOME, input, env]", ["env", "input"]),
        # A comment that goes on in the next line could hide a quote, and with it everything after.
        ('#\\\n"\nenv', ["#"]),
        ("first(range(9))", ["range"]),
    ],
)
def test_words_are_found_wherever_a_program_can_stand(program: str, words: list[str]) -> None:
    assert refused_words(program) == words


WRAPS = [
    "%s", "[%s]", "(%s)", "{a: (%s)}", "{a: %s}", "{(%s): 1}", '"t \\(%s) \\(1)"', '{"k\\(%s)": 2}', ".a | %s", "%s | .b",
    "if . then %s else 1 end", ".[%s]?", "map(%s)", "[.a, %s]", "{b: 1, c: %s}", '"(" + %s', "%s as $x | $x", "-(%s)", "{a: 1 | %s}",
]  # fmt: skip


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(WRAPS), min_size=1, max_size=6),
    st.sampled_from(["env", "$ENV", "input", ".env", "{env}", '"env"', "{env: 1}", ".a.input", '"\\"env"']),
)  # fmt: skip
def test_a_word_is_found_however_deep_and_a_field_or_text_never_taken_for_one(
    wraps: list[str], leaf: str
) -> None:
    program = leaf
    for wrap in wraps:
        program = wrap.replace("%s", program)
    assert refused_words(program) == ([leaf] if leaf in {"env", "$ENV", "input"} else [])


def test_a_long_expression_is_refused() -> None:
    with pytest.raises(JqError, match=f"longer than {MAX_EXPRESSION_LENGTH} characters: '.a.a"):
        check(".a" * 501)


def test_an_expression_that_fails_on_this_document_says_so() -> None:
    with pytest.raises(
        JqError, match=r"^jq expression '.a\[\]': Cannot iterate over number \(3\)$"
    ):
        evaluate(".a[]", {"a": 3})
    assert evaluate(".a[]", {"a": [1]}) == [1]


def test_an_expression_without_end_is_cut_off_and_not_tried_again_for_ten_minutes() -> None:
    now = [0.0]
    evaluator = Evaluator(deadline_s=0.5, clock=lambda: now[0])
    message = f"jq expression {ENDLESS!r} took longer than 0.5 s"
    with pytest.raises(JqOverrunError) as caught:
        values_of(evaluator, ENDLESS)
    assert str(caught.value) == message
    assert values_of(evaluator, ".a") == [3]
    child = evaluator._child
    with pytest.raises(JqOverrunError):
        values_of(evaluator, ENDLESS)
    assert evaluator._child is child
    now[0] = 601
    with pytest.raises(JqOverrunError):
        values_of(evaluator, ENDLESS)
    assert evaluator._child is None
    evaluator.close()


def test_an_expression_that_uses_too_much_memory_ends_only_its_own_process(
    evaluator: Evaluator,
) -> None:
    with pytest.raises(JqOverrunError, match=r"needs too much memory or time$"):
        values_of(evaluator, '"xxxxxxxxxx" * 100000000')
    assert values_of(evaluator, ".a") == [3]


def test_a_process_without_a_watchdog_ends_by_itself_when_it_hangs() -> None:
    evaluator = Evaluator(deadline_s=60, cpu_s=1)
    with pytest.raises(JqOverrunError, match=r"needs too much memory or time$"):
        values_of(evaluator, ENDLESS)
    assert values_of(evaluator, ".a") == [3]
    evaluator.close()


def test_too_many_values_are_refused(evaluator: Evaluator) -> None:
    with pytest.raises(JqError, match=r"yields more than 1000 values$"):
        values_of(evaluator, "|".join(["(., .)"] * 10) + ", .")


def test_the_process_has_no_environment(
    evaluator: Evaluator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "s")
    assert values_of(evaluator, "env.SECRET, $ENV.SECRET") == [None, None]


def test_a_process_that_was_killed_is_started_again(evaluator: Evaluator) -> None:
    assert values_of(evaluator, ".a") == [3]
    assert evaluator._child is not None
    evaluator._child.kill()
    evaluator._child.wait()
    assert values_of(evaluator, ".a") == [3]


def test_other_threads_go_on_while_an_expression_runs(evaluator: Evaluator) -> None:
    turns = 0

    def run() -> None:
        with pytest.raises(JqOverrunError):
            values_of(evaluator, ENDLESS)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 20


def test_threads_share_one_process(evaluator: Evaluator) -> None:
    results: list[list[Any]] = []

    def run(number: int) -> None:
        for _ in range(50):
            results.append(
                [*evaluator.ask({"expression": ".n", "document": {"n": number}}), number]
            )

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 400
    assert all(answer == asked_for for answer, asked_for in results)


def test_an_answer_too_large_to_hold_is_an_error() -> None:
    with pytest.raises(JqError, match="yields more than 4194304 bytes"):
        evaluate('"x" * 5000000', {})
