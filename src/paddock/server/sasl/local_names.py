"""How the name of a Kerberos principal becomes the identity that stands in ACLs.

    zk/host.example.com@EXAMPLE.COM   →   sasl:zk/host.example.com@EXAMPLE.COM

The rules are upstream's. A name has one part or two, and a realm. The first rule of `auth_to_local`
that fits makes the short name of it; then host and realm of the principal stand behind that, unless
the settings take them away.

    DEFAULT                           the first part, if the realm is our own
    RULE:[2:$1-$2](zk-.*)s/-.*//g     for names of two parts: put together, if it matches
                                      the second expression, with what the third replaces

`$0` is the realm. Expressions are Java's. Those that Python reads in another way, or not at all,
are refused at the start, and so are those that some of its releases match wrongly.

Where no rule fits, the identity is the principal as it is. Upstream uses the name then that the
client asks for, which lets users of a trusted realm be anybody.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from typing import Final

from paddock.server.config.config import ConfigError
from paddock.server.config.expressions import possessive_group

_PRINCIPAL: Final = re.compile(r"([^/@]*+)(?:/([^/@]*+))?@([^/@]*+)")
_RULE: Final = re.compile(
    r"\s*+(?:DEFAULT|RULE:\[(\d{1,2}):([^\]]*+)\](?:\(([^)]*+)\))?"
    r"(?:s/([^/]*+)/([^/]*+)/(g)?)?)"
)
_PARAMETER: Final = re.compile(r"\$(\d*)")
# In the text that replaces: a group, or a character that stands for itself.
_REPLACED: Final = re.compile(r"\$(\d)|\\(.)|([$\\])", re.DOTALL)
# Python has other words for these, or none.
_FOREIGN: Final = re.compile(r"\\[pPhHRXNkQEGzZ]|\(\?<[a-zA-Z]|\[[^\]]*(?:\[|&&)")
# Tickets for nobody in particular.
_ANONYMOUS: Final = "WELLKNOWN"


class NameRefusedError(Exception):
    """A principal has no identity here."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule; DEFAULT has no format."""

    text: str
    parts: int = 0
    form: str | None = None
    match: re.Pattern[str] | None = None
    replaced: re.Pattern[str] | None = None
    replacement: str = ""
    is_repeated: bool = False

    def apply(self, name: list[str], own_realm: str) -> str | None:
        """Return what a name, its realm and its parts, becomes; None if the rule is not for it.

        Raises NameRefusedError.
        """
        if self.form is None:
            result = name[1] if name[0] == own_realm else None
        elif len(name) - 1 != self.parts:
            result = None
        else:
            result = _PARAMETER.sub(lambda found: name[int(found[1])], self.form)
            if self.match is not None and not self.match.fullmatch(result):
                result = None
            elif self.replaced is not None:
                count = 0 if self.is_repeated else 1
                result = self.replaced.sub(self._replace, result, count=count)
        if result is not None and ("/" in result or "@" in result):
            raise NameRefusedError(f"the rule {self.text} leaves a '/' or '@' in its name")
        return result

    def _replace(self, found: re.Match[str]) -> str:
        def one(part: re.Match[str]) -> str:
            return (found[int(part[1])] or "") if part[1] else part[2]

        return _REPLACED.sub(one, self.replacement)


class LocalNames:
    """The identities of principals."""

    def __init__(
        self,
        rules: str = "DEFAULT",
        *,
        own_realm: str,
        has_host: bool = True,
        has_realm: bool = True,
    ) -> None:
        self._rules = _parse(rules)
        self._own_realm = own_realm
        self._has_host = has_host
        self._has_realm = has_realm

    def identity(self, principal: str) -> str:
        """Return the identity of a principal. Raises NameRefusedError."""
        match = _PRINCIPAL.fullmatch(principal)
        if match is None:
            raise NameRefusedError("the principal does not have one or two parts and a realm")
        first, host, realm = match.groups()
        if first == _ANONYMOUS:
            raise NameRefusedError("the ticket is an anonymous one")
        name = [realm, first] if host is None else [realm, first, host]
        for rule in self._rules:
            short = rule.apply(name, self._own_realm)
            if short is not None:
                break
        else:
            return principal
        host = f"/{host}" if self._has_host and host is not None else ""
        return short + host + (f"@{realm}" if self._has_realm else "")


def _parse(rules: str) -> list[_Rule]:
    found = []
    at, rules = 0, rules.strip()
    while at < len(rules):
        match = _RULE.match(rules, at)
        if match is None:
            rest = rules[at : at + 60].strip()
            raise ConfigError(f"security.auth_to_local: the rule {rest!r} is not understood")
        found.append(_rule(match))
        at = match.end()
    return found


def _rule(match: re.Match[str]) -> _Rule:
    text = match[0].strip()
    parts, form, pattern, replaced, replacement, repeated = match.groups()
    if form is None:
        return _Rule(text)
    for number in _PARAMETER.findall(form):
        if not number or int(number) > int(parts):
            raise _refused(text, f"there is no ${number} in a name of {int(parts)} parts")
    expression = None if replaced is None else _expression(text, replaced)
    for number, _, alone in _REPLACED.findall(replacement or ""):
        if alone or (number and int(number) > (expression.groups if expression else 0)):
            raise _refused(text, f"there is no group for ${number}")
    return _Rule(
        text,
        int(parts),
        form,
        None if pattern is None else _expression(text, pattern),
        expression,
        replacement or "",
        repeated is not None,
    )


def _expression(rule: str, pattern: str) -> re.Pattern[str]:
    foreign = _FOREIGN.search(pattern)
    if foreign is not None:
        raise _refused(rule, f"{foreign[0]!r} is not understood here")
    possessive = possessive_group(pattern)
    if possessive is not None:
        raise _refused(rule, f"{possessive!r} is not understood here: write (?>…)")
    try:
        with warnings.catch_warnings():
            # What may mean something else in another version.
            warnings.simplefilter("error")
            # Classes such as \w are those of ASCII in Java.
            return re.compile(pattern, re.ASCII)
    except (re.error, Warning, OverflowError) as error:
        raise _refused(rule, str(error)) from None


def _refused(rule: str, why: str) -> ConfigError:
    return ConfigError(f"security.auth_to_local: the rule {rule}: {why}")
