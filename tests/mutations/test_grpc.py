"""One thing broken at a time in traffic over gRPC: exactly that is found, in its place, and nothing else."""

from __future__ import annotations

import pytest

from support_mutations import MUTATIONS, Mutation, load_mutations, must_be_found

load_mutations()


@pytest.mark.parametrize("mutation", [each for each in MUTATIONS if each.sample.endswith("grpc")], ids=str)
def test_it_is_found(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that the mutation names, at the frames that it names, and nothing more."""
    must_be_found(mutation, monkeypatch)
