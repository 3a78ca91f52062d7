"""Source of the command palette: the available actions with their keys."""

from functools import partial

from textual.binding import ActiveBinding
from textual.command import DiscoveryHit, Hit, Hits, Provider

from a2a_inspect.keys.actions import display_key


class ActionProvider(Provider):
    """The actions available on the screen below the palette."""

    async def discover(self) -> Hits:
        """Yield all actions."""
        for found, words in self._available_actions():
            yield DiscoveryHit(words, partial(self._run_binding, found), help=found.tooltip or None)

    async def search(self, query: str) -> Hits:
        """Yield the actions that match the typed text."""
        matcher = self.matcher(query)
        for found, words in self._available_actions():
            action_words = f"{words} {found.tooltip}"
            if (score := matcher.match(action_words)) > 0:
                shown_words = matcher.highlight(words)
                yield Hit(
                    score,
                    shown_words,
                    partial(self._run_binding, found),
                    text=words,
                    help=found.tooltip or None,
                )

    def _available_actions(self) -> list[tuple[ActiveBinding, str]]:
        by_id: dict[str, tuple[ActiveBinding, list[str]]] = {}
        for key, found in self.screen.active_bindings.items():
            name = found.binding.id
            if name is not None and found.enabled and found.binding.description:
                by_id.setdefault(name, (found, []))[1].append(display_key(key))
        offered = sorted(
            by_id.values(), key=lambda each: not each[0].binding.show
        )  # actions of the key line first
        return [
            (found, f"{found.binding.description}  {' '.join(keys)}") for found, keys in offered
        ]

    async def _run_binding(self, binding: ActiveBinding) -> None:
        await self.app.run_action(binding.binding.action, binding.node)
