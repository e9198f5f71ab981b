"""Placeholders in settings files, which a build, a deployment or the program replaces by a value."""

from __future__ import annotations

import re
from typing import Final

_PLACEHOLDER: Final = re.compile(
    r"""
      \$\{ | \$\( | \$\[ | \$[A-Za-z_] | \#\{       # Spring, Terraform, shells, Azure, Octopus
    | \{\{ | \{% | <% | \[\[ | <<                   # Helm, Go, Jinja, ERB
    | %\(\w+\)[sd] | %\{ | %[A-Za-z_]\w*%           # Python, Puppet, Windows
    | @[\w.-]+@ | __[A-Za-z]\w*__                   # Maven, autoconf, sed
    | <[^<>]+> | ^\{[A-Za-z_][\w.]*\}$              # by hand, Python's format
    | ^!\w                                          # a tag of YAML, such as !Ref or !ENV
    """,
    re.VERBOSE,
)


def is_placeholder(text: str) -> bool:
    """Return whether the text contains a placeholder.

    >>> [is_placeholder(text) for text in ("${ACKS:all}", "{{ .Values.acks }}", "@acks@", "%(acks)s", "<acks>")]
    [True, True, True, True, True]
    >>> [is_placeholder(text) for text in ("all", "-1", '{"orders": {"0": 23}}', "by_duration:PT1H", "read_commited")]
    [False, False, False, False, False]
    """
    return _PLACEHOLDER.search(text) is not None
