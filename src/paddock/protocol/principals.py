"""Names of Kerberos: which ids of the scheme `sasl` are valid in an ACL.

Upstream takes a name without `@`, whatever else it has, and `user@REALM` or `user/host@REALM`. Ids
are compared as they are written.

>>> is_sasl_id("bob"), is_sasl_id("zk/host@EXAMPLE.COM"), is_sasl_id("a@b@c")
(True, True, False)
"""

from __future__ import annotations

import re
from typing import Final

_PRINCIPAL: Final = re.compile(r"[^/@]*+(?:/[^/@]*+)?@[^/@]*+")


def is_sasl_id(identifier: str) -> bool:
    """Return whether it can stand behind `sasl:` in an ACL."""
    return "@" not in identifier or _PRINCIPAL.fullmatch(identifier) is not None
