"""Texts of Debian's packages: a test of retrieval with its answers, and unlabelled text to train on.

| task | query | document |
|---|---|---|
| terms | what WordNet's gloss says, without its examples | a term; all of the synset's are right |
| manuals | the line that says what a man page is about | the beginning of its description |
| fortunes | the first half of a saying | its second half |

A hash of the text decides what is held out for the test. Of the rest, and of dictionaries, is the text for training,
without what has eight words in a row of a test's text. The same packages give the same texts in the same order.
"""

import dataclasses
import gzip
import hashlib
import re

import debian_packages
import wordnet_glosses

PACKAGES = ('wordnet-base', 'manpages', 'manpages-dev', 'fortunes-min', 'fortunes')  # of the test
TRAINING_PACKAGES = ('git-man', 'dict-foldoc', 'dict-jargon', 'dict-gcide')          # for training, beside these
DICTIONARIES = {'foldoc': 1, 'jargon': 1, 'gcide': 6}  # name -> of so many paragraphs one is taken
QUERIES = 1000  # of a task, at most
MANUALS_HELD_OUT_OF, FORTUNES_HELD_OUT_OF = 2, 4
DOCUMENT_WORDS, FEWEST_WORDS, MOST_WORDS = 100, 16, 120
SHARED_WORDS = 8
DEBIAN_12 = 'a9f8d077933d8b1e'  # the fingerprint of the test that Debian 12's packages give

FONT_MACROS = re.compile(r'\.(?:B|I|BR|BI|RB|RI|IB|IR|SM|SB)\s+(.*)')
ESCAPES = ((r'\\f(?:\[[^]]*\]|\(..|.)', ''), (r'\\\*\(|\\\*\[[^]]*\]|\\s[-+]?\d', ''), (r'\\\((?:aq|cq|oq)', "'"),
           (r'\\\((?:lq|rq|dq)', '"'), (r'\\\((?:em|en)', '-'), (r'\\(?:\(..|\[[^]]*\])', ' '), (r'\\-', '-'),
           (r'\\[&|^/,:%]', ''), (r'\\e', r'\\'), (r'\\(.)', r'\1'))


@dataclasses.dataclass
class Task:
    """Queries, documents, and for each query the indices of the documents that are right."""

    queries: list
    documents: list
    relevant: list


def files_of(packages, pattern, folders):
    """The files of these packages that match a pattern, by name; links are left out."""
    roots = [debian_packages.unpacked(package, folders) for package in packages]
    found = [path for root in roots for path in root.glob(pattern) if path.is_file() and not path.is_symlink()]
    return sorted(found, key=lambda path: (path.name, str(path)))


def plain(text):
    return ' '.join(text.split())


def of_roff(lines):
    """The text of lines of a man page, one string a paragraph; what is not filled (examples, tables) is left out."""
    paragraphs, words, filled = [], [], True
    for line in lines:
        if line.startswith(('.nf', '.TS', '.EX')):
            filled = False
        elif line.startswith(('.fi', '.TE', '.EE')):
            filled = True
        elif line.startswith(('.PP', '.P', '.LP', '.TP', '.IP', '.sp', '.SS', '.RS', '.RE', '.HP')):
            paragraphs.append(words)
            words = []
        elif font := FONT_MACROS.match(line):
            joined = not line.startswith(('.B ', '.I ', '.SM ', '.SB '))
            parts = re.findall(r'"([^"]*)"|(\S+)', font[1])
            words.append(('' if joined else ' ').join(quoted or word for quoted, word in parts))
        elif filled and line[:1] not in ('.', "'"):
            words.append(line)
    texts = []
    for words in (*paragraphs, words):
        text = ' '.join(words)
        for pattern, replacement in ESCAPES:
            text = re.sub(pattern, replacement, text)
        texts.append(plain(text))
    return [text for text in texts if text]


def manual(file):
    """(what the page is about, its paragraphs) of a man page; None if it only refers to another, or has no description.

    Paragraphs are those from DESCRIPTION on.
    """
    sections, title = {}, None
    for line in gzip.decompress(file.read_bytes()).decode('utf-8', 'replace').splitlines():
        if line.startswith('.SH'):
            title = line[3:].strip().strip('"').upper()
        elif title:
            sections.setdefault(title, []).append(line)
    _, dash, about = ' '.join(of_roff(sections.get('NAME', []))).partition(' - ')
    titles = list(sections)
    if not dash or 'DESCRIPTION' not in titles:
        return None
    later = titles[titles.index('DESCRIPTION'):]
    paragraphs = [text for title in later for text in of_roff(sections[title])]
    return (about, paragraphs) if paragraphs else None


def manuals(packages, folders):
    return [page for page in map(manual, files_of(packages, 'usr/share/man/man?/*.gz', folders)) if page]


def fortunes(folders):
    """Sayings that are prose, and not short; without the lines that say whose they are."""
    found = {}
    for file in files_of(('fortunes-min', 'fortunes'), 'usr/share/games/fortunes/*', folders):
        if file.suffix:
            continue
        for saying in re.split(r'^%\s*$', file.read_text(encoding='utf-8'), flags=re.MULTILINE):
            lines = [line for line in saying.splitlines() if not line.lstrip().startswith('--')]
            text = plain(re.sub('.\b', '', '\n'.join(lines)))
            letters = sum(character.isalpha() or character == ' ' for character in text)
            if FEWEST_WORDS <= text.count(' ') + 1 <= MOST_WORDS and letters >= 0.9 * len(text):
                found[text] = None
    return list(found)


def definition(gloss):
    """A gloss without its examples."""
    return plain(re.split(r';\s*"', gloss)[0])


def task_of(pairs, queries=QUERIES):
    """A task of (query, documents that are right): equal queries are one, and so are equal documents."""
    documents = {document: None for _, right in pairs for document in right}
    index = {document: i for i, document in enumerate(documents)}
    relevant = {}
    for query, right in pairs:
        relevant.setdefault(query, set()).update(index[document] for document in right)
    chosen = sorted(relevant, key=lambda query: hashlib.sha256(query.encode()).digest())[:queries]
    return Task(chosen, list(documents), [sorted(relevant[query]) for query in chosen])


def halves(text):
    words = text.split()
    return ' '.join(words[:len(words) // 2]), ' '.join(words[len(words) // 2:])


class Texts:
    """Everything that is read; `test()` and `training()` are the parts.

    Args:
      folders: as debian_packages.unpacked takes it.
    """

    def __init__(self, folders=None):
        wordnet = debian_packages.unpacked('wordnet-base', folders) / 'usr/share/wordnet'
        self.synsets = list(wordnet_glosses.synsets(wordnet))
        self.manuals = manuals(('manpages', 'manpages-dev'), folders)
        self.fortunes = fortunes(folders)
        self.folders = folders

    def parts(self, which):
        """(synsets, manuals, fortunes), held out or not."""
        rules = ((self.synsets, [gloss for _, _, gloss in self.synsets], wordnet_glosses.HELD_OUT_OF),
                 (self.manuals, [about for about, _ in self.manuals], MANUALS_HELD_OUT_OF),
                 (self.fortunes, self.fortunes, FORTUNES_HELD_OUT_OF))
        return [[item for item, out in zip(items, wordnet_glosses.held_out(texts, one_in)) if out == which]
                for items, texts, one_in in rules]

    def test(self):
        """{name: Task}."""
        synsets, pages, sayings = self.parts(True)
        described = [(about, [' '.join(' '.join(paragraphs).split()[:DOCUMENT_WORDS])]) for about, paragraphs in pages]
        return {'terms': task_of([(definition(gloss), terms) for terms, _, gloss in synsets]),
                'manuals': task_of(described),
                'fortunes': task_of([(first, [second]) for first, second in map(halves, sayings)])}

    def training(self):
        """Texts for training, each once, in order; none shares SHARED_WORDS words in a row with the test's."""
        synsets, pages, sayings = self.parts(False)
        texts = [gloss for _, _, gloss in synsets] + [term for terms, _, _ in synsets for term in terms]
        pages += manuals(('git-man',), self.folders)
        texts += [text for about, paragraphs in pages for text in (about, *paragraphs)]
        texts += [text for saying in sayings for text in (saying, *halves(saying))]
        texts += dictionaries(self.folders)
        # What is held out is held out whole: all paragraphs of pages, and glosses with their examples.
        synsets, pages, sayings = self.parts(True)
        tested = [text for _, paragraphs in pages for text in paragraphs]
        tested += [gloss for _, _, gloss in synsets] + [about for about, _ in pages] + sayings
        return without(dict.fromkeys(texts), tested)


def dictionaries(folders):
    """Paragraphs of dictionaries, those of large ones thinned out."""
    texts = []
    for name, one_in in DICTIONARIES.items():
        file = debian_packages.unpacked(f'dict-{name}', folders) / f'usr/share/dictd/{name}.dict.dz'
        content = gzip.decompress(file.read_bytes()).decode('utf-8', 'replace')
        paragraphs = [plain(re.sub(r'\[[^]]*Webster[^]]*\]|\[WordNet[^]]*\]|[{}]', '', text))
                      for text in re.split(r'\n\s*\n', content)]
        paragraphs = list(dict.fromkeys(text for text in paragraphs if text.count(' ') > 3))
        texts += [text for text, out in zip(paragraphs, wordnet_glosses.held_out(paragraphs, one_in)) if out]
    return texts


def runs_of_words(text):
    """Every SHARED_WORDS words in a row; of a shorter text, all of it."""
    words = re.findall(r'\w+', text.lower())
    return {tuple(words[i:i + SHARED_WORDS]) for i in range(max(1, len(words) - SHARED_WORDS + 1))}


def without(texts, tested):
    """The texts that share no run of words with those that are tested."""
    known = set().union(*map(runs_of_words, tested)) if tested else set()
    return [text for text in texts if not known & runs_of_words(text)]


def fingerprint(tasks):
    """Sixteen digits that differ where tasks do."""
    digest = hashlib.sha256()
    for name, task in tasks.items():
        digest.update(repr((name, task.queries, task.documents, task.relevant)).encode())
    return digest.hexdigest()[:16]
