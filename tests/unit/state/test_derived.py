"""Values that are kept until what they follow from changes, or until others need their place."""

from mooring.state.remembered import Derived, Seen


def test_a_value_is_found_once_and_nothing_is_a_value_too() -> None:
    asked = list[str]()

    def find(name: str, *, is_there: bool) -> int | None:
        asked.append(name)
        return len(name) if is_there else None

    kept = Derived[str, int | None]()
    for _ in range(2):
        assert kept.of("abc", find, "abc", is_there=True) == 3
        assert kept.of("x", find, "x", is_there=False) is None

    assert asked == ["abc", "x"]
    assert (kept.get("abc"), kept.get("unknown"), len(kept)) == (3, None, 2)


def test_values_of_another_version_are_forgotten_unless_it_says_the_same() -> None:
    kept = Derived[str, int]()
    kept.at(1).put("a", 1)
    assert kept.at(1).get("a") == 1

    kept.renew(2)
    assert kept.at(2).get("a") == 1
    assert kept.at(3).get("a") is None

    kept.put("a", 2)
    kept.forget()
    assert not len(kept)


def test_the_value_that_was_put_first_makes_room() -> None:
    kept = Derived[str, int](2)
    kept.put("a", 1)
    kept.put("b", 2)
    assert kept.put("a", 3) == 3
    kept.put("c", 4)

    assert list(kept) == ["a", "c"]


def test_a_version_is_news_until_it_is_looked_at() -> None:
    seen = Seen()
    assert seen.is_news(0)
    assert not seen.is_news(0)
    assert seen.is_at(0) and not seen.is_at(1)
    assert seen.is_news(1)

    seen.forget()
    assert not seen.is_at(1)
    assert seen.is_news(1)
