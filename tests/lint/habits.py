"""Sixty habits of prose that pages and help must be free of, each with what to write in its place.

`tests/lint/prose.py` looks for them outside of code, without regard to case. A blank in a pattern matches
any blank within a paragraph, including the end of a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_LISTED = r"""
\b(told|tells?|telling)\b                       says, shows, or the thing itself
\bhears?\b                                      learns, receives
\bsa(ys|y) so\b                                 says what
\b(nobody|somebody)('s)?\b                      no user, a client: name who it is
\bwho(so)?ever\b                                name who it is
\bwhatever one\b                                any
\bblam(e|es|ing)\b                              names the cause
\binsists?\b                                    requires
\bcalm(ly|er)?\b                                idle, quiet
\bin order to\b                                 to
\bdue to the fact\b                             because
\bin the event (of|that)\b                      if
\bat this point in time\b                       now
\bfor the purposes? of\b                        for
\bwith (regard|respect|regards) to\b            about
\bin terms of\b                                 by, in
\bas a matter of fact\b                         leave it out
\ba (large|small|great|certain) number of\b          how many
\ba variety of\b                                which
\ban? (awful )?lot of\b                         many, much
\bprior to\b                                    before
\bsubsequent(ly)? to\b                          after
\bin spite of the fact\b                        although
\b(utili[sz]es?|utili[sz]ing|utili[sz]ation)\b  use
\bleverag(e|es|ing)\b                           use
\bmakes? use of\b                               uses
\bfacilitat(e|es|ing)\b                         helps
\bcommenc(e|es|ing)\b                           begins
\bterminat(e|es) itself\b                       ends
\b(is|are) able to\b                            can
\bhas the (ability|capability)\b                can
\ballows? to\b                                  lets you, allows doing
\b(enables?|permits?) to\b                      lets you
\b(very|quite|rather) (much|fast|slow|large|small|easy|simple)\b   a figure
\b(simply|basically|obviously|clearly|actually|of course)\b        leave it out
\b(easily|effortless(ly)?|seamless(ly)?)\b      leave it out
\b(powerful|blazing|cutting[- ]edge|state[- ]of[- ]the[- ]art|world[- ]class|best[- ]in[- ]class)\b   a figure
\b(robust(ly)?|comprehensive|versatile)\b       what it withstands, what it holds
\b(delve|dive into|deep dive)\b                 read
\b(crucial|pivotal|vital|paramount)(ly)?\b      needed, and why
\b(it is|it's) (important|worth|worthwhile) (to note|noting)\b     leave it out
\b(please )?note that\b                         leave it out
\bit should be (noted|mentioned|pointed out)\b  leave it out
\bas (mentioned|noted|said|described) (above|before|earlier|below)\b   a link
\b(the )?(above|below)[- ]mentioned\b           name it
\bneedless to say\b                             leave it out
\bnot only\b.*\bbut also\b                      and
\band/or\b                                      or
\betc\b                                         which others
\bso[- ]called\b                                the name alone
\brespectively\b                                a table, or two sentences
\b(thereof|therein|thereby|whereof|wherein|whereby|herein|hereby|henceforth)\b   of it, in it, by which
\b(aforementioned|aforesaid|said latter)\b      name it
\b(informations|datas|softwares|hardwares|feedbacks|equipments|advices)\b   the singular
\b(could|should|would|must) of\b                have
\bmore (simple|easy|fast|slow|cheap)\b          simpler, easier
\b(resp|approx|incl|excl)\.                     the whole word
(?-i:\b(?!(?:had had|that that)\b)([a-z]{2,}) \1\b)  the word once
\b(under the hood|out of the box|on the fly|boils down to|in a nutshell)\b   what is meant
[a-z]!(?= |\n|$)                                a full stop
"""


MOST_WORDS = 45
"""Words in a sentence, or in a part of it up to a colon or a semicolon."""


def _parsed(text: str) -> tuple[tuple[re.Pattern[str], str], ...]:
    pairs = (re.split(r" {2,}", line.strip(), maxsplit=1) for line in text.strip().splitlines())
    return tuple(
        (re.compile(pattern.replace(" ", r"(?: +| *\n *)"), re.IGNORECASE), instead)
        for pattern, instead in pairs
    )


HABITS = _parsed(_LISTED)
"""Patterns, and what to write instead."""


def habits_of(prose: str) -> Iterator[tuple[int, str]]:
    """Yields what is to be corrected in text without code, with the lines."""
    for pattern, instead in HABITS:
        for found in pattern.finditer(prose):
            words = " ".join(found[0].split())
            yield line_of(prose, found.start()), f"{words!r}: write {instead}"
    for part in re.finditer(
        r"(?:[^.?!:;|\n]|[.?!:;](?![\s|])|\n(?!\s*(?:\n|[-*#|]|\d+\. )))+", prose
    ):
        if (count := len(re.findall(r"\S*\w\S*", part[0]))) > MOST_WORDS:
            begins = part.end() - len(part[0].lstrip())
            yield line_of(prose, begins), f"a sentence of {count} words: make two of it"


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1
