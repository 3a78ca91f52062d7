"""Who asks the first agent of a chain. Prints the answer. Runs in the `traced` environment."""

from __future__ import annotations

import asyncio

from hop import TEXT, Traces, ask, next_of, options


async def main() -> None:
    """Ask, print, end."""
    args = options(__doc__ or "").parse_args()
    whom = next_of(args.name, args.book)
    assert whom is not None
    print(await ask(Traces(args), whom, TEXT))


if __name__ == "__main__":
    asyncio.run(main())
