"""Examples of the documentation, run as a reader runs them in `python -m asyncio`.

`await`, `async with` and `async for` may stand anywhere. A `print` with a comment behind it keeps
what the comment says, several times with `, then` in between:

    print(stat.version)                         # 1
    async for change in client.watch("/a"):
        print(change.data)                      # b'v1', then b'v2'

`...` stands for anything. An example that awaits nothing may block, so it runs in a thread.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import io
import sys
import tokenize
from typing import Any, Final

DEADLINE_S: Final = 60.0

_SAYS: Final = doctest.OutputChecker()


async def run_example(text: str, names: dict[str, Any], where: str = "<example>") -> None:
    """Run an example with these names, to which it adds its own.

    Raises AssertionError for what was printed and should not have been, or the other way round.
    """
    code = compile(text, where, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    printed: list[tuple[int, str]] = []

    def note(*what: object) -> None:
        printed.append((sys._getframe(1).f_lineno, " ".join(str(one) for one in what)))

    names["print"] = note
    async with asyncio.timeout(DEADLINE_S):
        if code.co_flags & inspect.CO_COROUTINE:
            await eval(code, names)
        else:
            await asyncio.to_thread(eval, code, names)
    for line, promise in _promises(text).items():
        said = ", then ".join(text for number, text in printed if number == line)
        assert _SAYS.check_output(f"{promise}\n", f"{said}\n", doctest.ELLIPSIS), (
            f"{where}, line {line}: {said!r} instead of {promise!r}"
        )


def _promises(text: str) -> dict[int, str]:
    """Return the comments of lines with a print, by line number."""
    return {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("print(")
    }
