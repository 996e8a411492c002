"""The glosses of WordNet 3.0 as labelled text: what each of its 117,659 synsets means, in 45 classes.

The class is the number of the lexicographer's file that the synset is in: noun.animal, verb.motion and so on. One
gloss in ten is held out. A hash of the text decides which, so that equal glosses, which some synsets share, are never
on both sides.
"""

import hashlib
import pathlib

import numpy as np

FOLDER = pathlib.Path('/usr/share/wordnet')
FILES = ('data.noun', 'data.verb', 'data.adj', 'data.adv')
CLASSES = 45
MAX_TOKENS = 128
HELD_OUT_OF = 10


def synsets(folder):
    """Yields (terms, class, gloss) of each synset in the order of the files: terms are what it calls the thing.

    Raises FileNotFoundError with the remedy if WordNet is not there.
    """
    for name in FILES:
        path = pathlib.Path(folder) / name
        if not path.is_file():
            raise FileNotFoundError(f'{path} is not there; install the Debian package wordnet-base, or name its folder'
                                    ' with --wordnet')
        for line in path.read_text(encoding='utf-8').splitlines():
            if not line.startswith(' '):  # the licence at the head of each file is indented
                synset, gloss = line.split('|', 1)
                fields = synset.split()
                words = fields[4:4 + 2 * int(fields[3], 16):2]  # an adjective may end in a marker: afraid(p)
                terms = [word.split('(')[0].replace('_', ' ') for word in words]
                yield terms, int(fields[1]), gloss.strip()


def read(folder):
    """Returns (glosses, classes int64 [n]) of all synsets; raises what they do."""
    _, classes, glosses = zip(*synsets(folder))
    return list(glosses), np.array(classes, np.int64)


def held_out(texts, one_in=HELD_OUT_OF):
    """Returns which texts are held out, one in so many: bool [n]."""
    digests = (hashlib.sha256(text.encode()).digest() for text in texts)
    return np.array([int.from_bytes(digest[:8], 'big') % one_in == 0 for digest in digests])


def tokenise(glosses, tokenizer_file):
    """Returns (wordpieces int64 [tokens], lengths int64 [n]): all glosses in one row, [CLS] and [SEP] included."""
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MAX_TOKENS)
    encoded = [np.array(item.ids, np.int64) for item in tokenizer.encode_batch(glosses)]
    return np.concatenate(encoded), np.array([len(ids) for ids in encoded], np.int64)
