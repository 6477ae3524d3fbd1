"""The words of a search: a text is cut into words, and a word occurs in several spellings."""

import json
import re
from string import ascii_lowercase, ascii_uppercase

from zq.model.errors import InvalidRequest

MOST_WORDS = 8
LONGEST_WORD = 200

_WORD = re.compile(r'"([^"]*)"|(\S+)')
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, each one once. What stands in double quotes is one word."""
    found = ((match[1] if match[2] is None else match[2]) for match in _WORD.finditer(text))
    return tuple(dict.fromkeys(word for word in found if word))


def checked_words(text: str | None) -> tuple[str, ...]:
    """The words of a search; none if there is none. Raises `InvalidRequest`."""
    if text is None:
        return ()
    words = words_of(text)
    if not words:
        raise InvalidRequest("`search` is empty: write what to look for, or leave it out")
    if len(words) > MOST_WORDS or max(map(len, words)) > LONGEST_WORD:
        raise InvalidRequest(
            f"`search` takes up to {MOST_WORDS} words of up to {LONGEST_WORD} characters each:"
            " leave some out"
        )
    return words


def quoted(word: str) -> str:
    """A word as `words_of` reads it."""
    return f'"{word}"' if any(map(str.isspace, word)) else word


def spellings(word: str) -> tuple[str, ...]:
    """How a word may be written in a text whose ASCII letters are small ones.

    JSON writes some characters as escapes, and has a choice with those beyond ASCII.
    """
    plain = [word] if word.isascii() else [word, word.lower(), word.upper()]
    written = [
        form
        for each in plain
        for form in (each, *(json.dumps(each, ensure_ascii=a)[1:-1] for a in (False, True)))
    ]
    return tuple(dict.fromkeys(form.translate(_SMALL) for form in written))
