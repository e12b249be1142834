"""What the names of the tickets tell: who holds, who waits, and inside which lease."""

from hostres.listing import HOLDING, WAITING, Listing


def test_names_tell_who_stands_where() -> None:
    texts = [
        "h.1.a.f", "s.2.1.b", "s.3.2-1.c.3", "w.4.1.d", "z.5.2-1.e", "w.6.f", "z.7.0", "s.8.99.1", "w.9.99-98.2",
        "1.json", "h.1.2.3.4", "s.1.x.2", "s.1.2", "z.1.2.3.4", "x.1.2",
    ]  # fmt: skip
    listing = Listing.of(texts)
    assert [entry.number for entry in listing.holding] == [1, 8]
    assert [(entry.number, entry.state) for entry in listing.waiting] == [(6, "w"), (7, "z"), (9, "w")]
    assert {host: [entry.number for entry in line.holding] for host, line in listing.inside.items()} == {1: [2], 2: [3]}
    assert [entry.number for entry in listing.inside[1].waiting] == [4]
    assert [entry.number for entry in listing.inside[2].waiting] == [5]
    assert listing.strange == texts[10:]
    assert listing.tickets == len(listing.entries) == 9
    for entry in listing.entries:
        letter = {"s": HOLDING}.get(entry.name[0], entry.name[0])
        assert entry.state == letter
        assert entry.name.startswith(entry.in_state(entry.state).name)
    two = listing.find(2, "b")
    assert two is not None
    listing.forget(two)
    assert [entry.number for entry in listing.inside[1].holding] == [3]
    assert [entry.number for entry in listing.inside[1].waiting] == [4, 5]
    (one, _) = listing.holding
    listing.forget(one)
    assert [entry.number for entry in listing.holding] == [3, 8]
    assert [entry.number for entry in listing.awake] == [4, 6, 9]
    assert listing.replace(listing.awake[0], "z").name == "z.4.1.d"
    assert [entry.number for entry in listing.waiting if entry.state == WAITING] == [6, 9]
