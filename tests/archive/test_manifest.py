"""Bloom filters of identifiers in manifests."""

from a2a_proxy.archive.manifest import bloom_filter, may_contain


def test_bloom_filter_has_no_false_negatives_and_few_false_positives() -> None:
    idents = [f"task-{number}" for number in range(2000)]
    bits = bloom_filter(idents)

    assert len(bits) == 3000
    assert all(may_contain(bits, ident) for ident in idents)
    assert sum(may_contain(bits, f"other-{number}") for number in range(2000)) < 20


def test_an_empty_bloom_filter_contains_nothing() -> None:
    assert not may_contain(bloom_filter([]), "")
    assert may_contain(bloom_filter(["\ud800"]), "\ud800")
