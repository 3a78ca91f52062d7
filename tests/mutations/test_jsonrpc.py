"""One thing broken at a time in traffic over JSON-RPC: exactly that is flagged, in its place, and
nothing else."""

from __future__ import annotations

import pytest

from support_mutations import Mutation, must_be_found, parameters


@pytest.mark.parametrize("mutation", parameters(lambda sample: sample.endswith("jsonrpc")))
def test_a_mutation_is_found_where_it_is_and_nothing_else(
    mutation: Mutation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the mutation names, at the frames that it names, and nothing more."""
    must_be_found(mutation, monkeypatch)
