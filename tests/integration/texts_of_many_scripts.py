"""Texts to tokenise: what Debian's packages brought here in many languages, and what is drawn."""

import gettext
import gzip
import itertools
import pathlib
import random
import unicodedata

MAN_PAGES = pathlib.Path('/usr/share/man')
CATALOGS = pathlib.Path('/usr/share/locale')
MOST_FILES = 400  # of each kind

WORDS = ("The quick brown fox's jumps, over 12 lazy dogs! don't I'M we'll they'VE <s> </s> <pad> [SEP] [MASK] "
         '<0x0A> ▁ ▁▁word ##ing 3.14 1,000,000 $5.00 a@b.c http://x.y/z?q=1 snake_case CamelCase ÄÖÜ ß ﬁ ﬀ ① ½ ℃ Ⅷ '
         'naïve café Straße İstanbul ıI ΣΊΣΥΦΟΣ Ω Å ａｂｃ ＡＢＣ １２３ ㌔ ㍿ ㎏ 한국어 조선말 中文字符 日本語テキスト ｶﾞ がぎぐ '
         'العربية مُحَمَّد ﷺ ﻼ עברית שָׁלוֹם हिन्दी क्षत्रिय ไทยภาษา ၊ မြန်မာ ខ្មែរ தமிழ் ქართული '
         'ՀԱՅԵՐԵՆ ᏣᎳᎩ ⵜⴰⵎⴰⵣⵉⵖⵜ Ελληνικά '
         'Русский Ёлка ѣ').split(' ')
RANGES = [(0x20, 0x7F), (0xA0, 0x250), (0x250, 0x370), (0x370, 0x530), (0x531, 0x600), (0x600, 0x780), (0x900, 0xE00),
          (0xE00, 0xF00), (0x1000, 0x1100), (0x1100, 0x1200), (0x1E00, 0x2000), (0x2000, 0x2070), (0x2070, 0x2C00),
          (0x3000, 0x3400), (0x4E00, 0x5000), (0x9F00, 0xA000), (0xAC00, 0xB000), (0xF900, 0xFB00), (0xFB00, 0xFE00),
          (0xFE00, 0x10000), (0x10000, 0x10400), (0x1D400, 0x1D800), (0x1F300, 0x1FB00), (0x20000, 0x20100)]
EMOJI = ['😀', '👍🏽', '👩‍👩‍👧‍👦', '🏳️‍🌈', '🇩🇪🇫🇷🇯', '1️⃣', '❤️', '🧑🏿‍🚀', '\u200d', '☺︎', '#️⃣']
BLANKS = [' ', ' ', ' ', ' ', '  ', '   ', '\t', '\n', '\r\n', '\n\n', '\u00a0', '\u3000', '\u2009', '\u200b',
          '\ufeff', '\x0b', '\x85', '\u2028', '\x00', '\x1f', '\ufffd', '']


def man_pages():
    for file in sorted(MAN_PAGES.glob('**/*.gz'))[:MOST_FILES]:
        with gzip.open(file, 'rt', encoding='utf-8', errors='replace') as page:
            yield from page.read().splitlines()


def messages():
    """What programs say in the languages that they were translated into."""
    files = sorted(CATALOGS.glob('*/LC_MESSAGES/*.mo'))
    for file in files[::max(1, len(files) // MOST_FILES)]:
        try:
            with open(file, 'rb') as stream:
                catalog = gettext.GNUTranslations(stream)
        except (OSError, UnicodeError):
            continue
        yield from (text for text in itertools.islice(catalog._catalog.values(), 40) if isinstance(text, str))


def drawn(draw):
    """A text of words, of characters of one script, and of what is seldom among them."""
    parts = []
    script = draw.choice(RANGES)
    for _ in range(draw.randint(1, 20)):
        kind = draw.random()
        if kind < 0.4:
            parts.append(draw.choice(WORDS))
        elif kind < 0.75:
            parts.append(''.join(chr(draw.randrange(*script)) for _ in range(draw.randint(1, 8))))
        elif kind < 0.85:
            parts.append(draw.choice(EMOJI))
        elif kind < 0.95:
            parts.append('e' + ''.join(chr(draw.randrange(0x300, 0x370)) for _ in range(draw.randint(1, 3))))
        else:
            parts.append(chr(draw.randrange(0x110000 - 0x800)) * draw.randint(1, 3))
        parts.append(draw.choice(BLANKS))
    # Surrogates are no text; what later versions of Unicode than Python's added is not known to be one thing.
    return ''.join(c for c in ''.join(parts) if unicodedata.category(c) not in ('Cs', 'Cn'))


def every_character():
    """All that Python's version of Unicode has, by themselves and within a word, forty to a text."""
    known = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ('Cs', 'Cn', 'Co')]
    han = [c for c in known if '\u4e00' <= c <= '\u9fff' or '\uac00' <= c <= '\ud7a3' or '\U00020000' <= c]
    known = sorted(set(known) - set(han) | set(han[::50]))
    for i in range(0, len(known), 40):
        yield ' '.join(f'{c}a{c}' for c in known[i:i + 40])


def texts(count, seed=7):
    draw = random.Random(seed)
    found = [text[:2000] for text in itertools.chain(man_pages(), messages()) if text.strip()]
    draw.shuffle(found)
    edges = ['', ' ', '\n', '\x00', 'a', '\u0301', ' a', 'a ', '  a  b  ', 'a' * 300, 'é' * 101, '[CLS]',
             ' [SEP]x [MASK] ', 'x' * 5000, ' ' * 500, '😀' * 200]
    result = edges + list(every_character())
    result += found[:max(0, (count - len(result)) // 2)]
    while len(result) < count:
        result.append(drawn(draw))
    return result[:count]
