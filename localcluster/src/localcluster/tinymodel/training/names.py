"""Made-up names of files, folders, cities and words; a fixed part of all names is kept from training.

Every function takes the source of randomness. Names are drawn from so many that training sees hardly one twice, and
`is_held_out` sets a sixteenth of all possible names apart, so that what evaluation asks for was never seen at all.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

RESERVED = frozenset("notes.txt a.txt b.txt c.txt plan.md fox.txt résumé-日本語-🦊.txt src/main.py docs Zürich".split())
"""Names that `toolstream` and the demo ask for: never in training."""

ONSETS = "b c ch d dr f fl g gr h j k kl l m n p pl qu r s sh sk sp st t tr v w x z".split()
VOWELS = "a e i o u ai ea ou ie".split()
CODAS = ("", "", "", "", "n", "r", "s", "l", "t", "m", "ck", "x", "nd")
STEMS = tuple(
    "main index config notes todo readme setup utils helper server client data report log test app core build user "
    "plan list table image style script module draft summary letter budget recipe invoice backup schema query".split()
)
COMMON = tuple("the quick brown fox jumps over lazy dog and then error ok true false null".split())
FOLDERS = tuple("src docs lib tests data tmp etc home assets scripts public build pkg cmd api app var opt".split())
ENDINGS = tuple(
    "txt md py js ts json yaml toml csv log html css go rs c h cpp java sh sql xml ini lock png pdf".split()
)
FOREIGN = (
    "äöüßéèêáàâíóúñçåøæœřšžčłńğ",
    "αβγδεζηθικλμνξοπρστυφχψω",
    "абвгдежзиклмнопрстуфхцчшыьэюя",
    "日本語漢字中文書類東京都市名前会議資料報告",
    "あいうえおかきくけこさしすせそカキクケコ",
    "가나다라마바사아자차카타파하한국어",
    "אבגדהוזחטיכלמנסעפצקרשת",
    "🦊🐍🚀🎉📄🌍🔥🍕🐳🌧",
)
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def is_held_out(name: str) -> bool:
    """Whether a name is kept for evaluation."""
    return name in RESERVED or zlib.crc32(name.encode()) % 16 == 0


def drawn(make: Callable[[random.Random], str], source: random.Random, *, held_out: bool) -> str:
    """A name made by `make` from the wanted part of all names."""
    while is_held_out(name := make(source)) is not held_out:
        pass
    return name


def syllables(source: random.Random, least: int = 1, most: int = 3) -> str:
    """A word that can be spoken: `least` to `most` syllables, lower case."""
    return "".join(
        source.choice(ONSETS) + source.choice(VOWELS) + source.choice(CODAS) for _ in range(source.randint(least, most))
    )


def stem(source: random.Random) -> str:
    """A file's name without its ending."""
    (make,) = source.choices([make for make, _ in _STEM_MAKERS], [weight for _, weight in _STEM_MAKERS])
    return make(source)


def foreign(source: random.Random) -> str:
    """A word beyond ASCII, of one script, now and then between ASCII letters."""
    letters = source.choice(FOREIGN)
    word = "".join(source.choice(letters) for _ in range(source.randint(1, 4)))
    return source.choice(("", syllables(source, 1, 1))) + word + source.choice(("", syllables(source, 1, 1)))


def _camel(source: random.Random) -> str:
    return syllables(source, 1, 2).capitalize() + syllables(source, 1, 2).capitalize()


def _noise(source: random.Random) -> str:
    return "".join(source.choice(LETTERS + "0123456789") for _ in range(source.randint(2, 8)))


_STEM_MAKERS: tuple[tuple[Callable[[random.Random], str], int], ...] = (
    (syllables, 35),
    (lambda source: source.choice(STEMS), 20),
    (lambda source: source.choice(LETTERS), 12),
    (_noise, 12),
    (_camel, 7),
    (lambda source: syllables(source, 1, 2).upper(), 4),
    (foreign, 10),
)
"""What a stem is, and how often in a hundred."""


def file(source: random.Random) -> str:
    """A path, as in `src/kal_2.py`."""
    parts = [stem(source)]
    while source.random() < 0.22 and len(parts) < 4:
        parts.append(source.choice((stem(source), str(source.randint(0, 2030)))))
    name = parts[0] + "".join(source.choice("-_.") + part for part in parts[1:])
    if source.random() < 0.9:
        name += "." + (source.choice(ENDINGS) if source.random() < 0.8 else syllables(source, 1, 1))
    return name if source.random() < 0.65 else folder(source) + "/" + name


def folder(source: random.Random) -> str:
    """A folder, as in `docs/mai`."""
    depth = 1 if source.random() < 0.7 else source.randint(2, 3)
    names = [source.choice(FOLDERS) if source.random() < 0.5 else stem(source) for _ in range(depth)]
    return source.choice(("", "", "", "", "/", "./")) + "/".join(names)


def city(source: random.Random) -> str:
    """A city, as in `São Kelto`."""
    words = [syllables(source, 1, 3).capitalize() for _ in range(1 if source.random() < 0.75 else 2)]
    if source.random() < 0.3:
        at = source.randint(1, len(words[0]))
        words[0] = words[0][:at] + source.choice(FOREIGN[0]) + words[0][at:]
    return source.choice((" ", " ", "-")).join(words)


def word(source: random.Random) -> str:
    """A word of running text."""
    kind = source.random()
    return source.choice(STEMS) if kind < 0.2 else source.choice(COMMON) if kind < 0.5 else syllables(source, 1, 2)


def text(source: random.Random, least: int, most: int) -> str:
    """Words with blanks between."""
    return " ".join(word(source) for _ in range(source.randint(least, most)))
