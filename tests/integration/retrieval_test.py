"""deploy/models/retrieval.py: its metric, that its texts are the same each time, and both engines' way to vectors."""

import gzip
import json
import sys

import numpy as np
import pytest

from conftest import SHIPPED
from python_module import needs_module

sys.path.insert(0, str(SHIPPED))

import retrieval  # noqa: E402
import retrieval_texts  # noqa: E402

WORDS = ('amber', 'basin', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heath', 'islet', 'jetty', 'knoll', 'ledge')


def sentence(rng, count):
    return ' '.join(rng.choice(WORDS, count))


@pytest.fixture(name='packages', scope='module')
def unpacked_packages(tmp_path_factory):
    """Packages with the files that the real ones have, and made-up texts in them."""
    root, rng = tmp_path_factory.mktemp('packages'), np.random.default_rng(1)

    def write(package, path, text, compress=False):
        file = root / package / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(text.encode()) if compress else text.encode())

    for part, letter in (('noun', 'n'), ('verb', 'v'), ('adj', 'a'), ('adv', 'r')):
        lines = ['  1 This is a licence.'] + [
            f'{i:08} 03 {letter} 02 the_{part}_{i} 0 also_{part}_{i}(p) 0 000 | {part} {sentence(rng, 9)}; "as in {i}"'
            for i in range(60)]
        write('wordnet-base', f'usr/share/wordnet/data.{part}', '\n'.join(lines) + '\n')
    for i in range(40):
        page = (f'.\\" a comment\n.TH page{i} 2\n.SH NAME\npage{i} \\- make {sentence(rng, 6)}\n.SH SYNOPSIS\n.nf\nno\n.fi\n'
                f'.SH DESCRIPTION\nThe\n.BR page{i} ()\ncall \\fImakes\\fP {sentence(rng, 12)}.\n.PP\n{sentence(rng, 20)}\n'
                '.SH "SEE ALSO"\n.BR other (2)\n')
        write('manpages-dev', f'usr/share/man/man2/page{i}.2.gz', page, compress=True)
    write('manpages', 'usr/share/man/man7/only.7.gz', '.so man2/page1.2\n', compress=True)
    write('git-man', 'usr/share/man/man1/git-x.1.gz',
          f'.SH "NAME"\ngit-x \\- do x\n.SH "DESCRIPTION"\n.sp\n{sentence(rng, 30)}\n', compress=True)
    for package in ('fortunes', 'fortunes-min'):
        sayings = [f'{package} {sentence(rng, 24)}.\n\t\t-- Someone' for i in range(40)] + ['short', '1+1=2 ' * 20]
        write(package, f'usr/share/games/fortunes/{package}', '\n%\n'.join(sayings) + '\n%\n')
        write(package, f'usr/share/games/fortunes/{package}.dat', 'not a text')
    for name in retrieval_texts.DICTIONARIES:
        entries = [f'{sentence(rng, 1)}\n   [1913 Webster] {name} {{{sentence(rng, 14)}}}' for i in range(30)]
        write(f'dict-{name}', f'usr/share/dictd/{name}.dict.dz', '\n\n'.join(entries), compress=True)
    return root


def test_metric_of_known_rankings():
    scores = np.array([[0.9, 0.8, 0.7, 0.1], [0.9, 0.8, 0.7, 0.1], [0.5, 0.5, 0.5, 0.5]])
    found = retrieval.figures(scores, [[0], [1, 3], [2]], depth=3)
    at = 1 / np.log2(np.arange(2, 5))
    np.testing.assert_allclose(found['ndcg'], [1, at[1] / (at[0] + at[1]), at[2]])
    np.testing.assert_allclose(found['recall'], [1, 0.5, 1])
    assert retrieval.figures(scores[:1], [[3]], depth=3) == {'ndcg': [0], 'recall': [0]}


def test_more_right_documents_than_places_can_still_be_all_right():
    found = retrieval.figures(np.ones((1, 4)), [[0, 1, 2, 3]], depth=2)
    assert found == {'ndcg': [1], 'recall': [0.5]}


def test_perfect_and_random_vectors(packages):
    tasks = retrieval_texts.Texts(packages).test()
    places = {}
    for task in tasks.values():
        for i, (query, right) in enumerate(zip(task.queries, task.relevant)):
            for text in (query, *(task.documents[j] for j in right)):
                places[text] = i
    one_hot = retrieval.measure(lambda texts: np.eye(512)[[places.get(text, 511) for text in texts]], tasks)
    assert one_hot['mean'] == {'ndcg': 100.0, 'recall': 100.0}
    drawn = np.random.default_rng(1)
    assert retrieval.measure(lambda texts: drawn.normal(size=(len(texts), 64)), tasks)['mean']['ndcg'] < 60


def test_texts_are_what_the_packages_hold(packages):
    tasks = retrieval_texts.Texts(packages).test()
    terms, manuals, fortunes = (tasks[name] for name in ('terms', 'manuals', 'fortunes'))
    part = terms.queries[0].split()[0]
    assert '"' not in ''.join(terms.queries) and len(terms.relevant[0]) == 2
    assert {terms.documents[i].split()[0] for i in terms.relevant[0]} == {'the', 'also'}
    assert all(part in terms.documents[i] and '(' not in terms.documents[i] for i in terms.relevant[0])
    document = manuals.documents[manuals.relevant[0][0]]
    assert manuals.queries[0].startswith('make ') and document.startswith('The page') and '() call makes ' in document
    assert 'SEE' not in document and 'SYNOPSIS' not in document
    assert len(fortunes.queries) > 5 and all(query.startswith('fortunes') for query in fortunes.queries)
    assert not any('Someone' in text for text in fortunes.documents)


def test_texts_are_the_same_each_time(packages):
    first, second = retrieval_texts.Texts(packages), retrieval_texts.Texts(packages)
    assert retrieval_texts.fingerprint(first.test()) == retrieval_texts.fingerprint(second.test()) == '38270f363a50c4c0'
    assert first.training() == second.training()
    tasks = first.test()
    tasks['terms'].relevant[0] = []
    assert retrieval_texts.fingerprint(tasks) != retrieval_texts.fingerprint(first.test())


def test_nothing_of_the_test_is_trained_on(packages):
    texts = retrieval_texts.Texts(packages)
    training = texts.training()
    assert len(training) == len(set(training)) > 300
    assert all(any(text.startswith(kind) for text in training) for kind in ('noun', 'make', 'fortunes', 'the noun'))
    assert any('gcide' in text for text in training) and any('do x' in text for text in training)
    known = set()
    for task in texts.test().values():
        for text in (*task.queries, *(text for text in task.documents if len(text.split()) > 7)):
            known |= retrieval_texts.runs_of_words(text)
    assert not any(known & retrieval_texts.runs_of_words(text) for text in training)


def test_what_shares_words_in_a_row_is_left_out():
    words = [f'w{i}' for i in range(10)]
    tested, more, fewer = ' '.join(words), 'x ' + ' '.join(words[:8]), 'x ' + ' '.join(words[:7])
    assert retrieval_texts.without([more, fewer, 'SHORT one'], [tested, 'short one!']) == [fewer]


def test_missing_packages_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match='wordnet-base'):
        retrieval_texts.Texts(tmp_path)


@pytest.mark.parametrize('arguments, message', [
    (['m', '--engines=torch'], "'torch' is no engine; there are swizzle, onnxruntime"), ([], 'MODEL')])
def test_refuses_arguments(arguments, message, capsys):
    with pytest.raises(SystemExit):
        retrieval.parse_args(arguments)
    assert message in capsys.readouterr().err


@needs_module
def test_a_model_that_takes_no_texts_is_named(packages, monkeypatch):
    model = SHIPPED / 'mobilenet_v1_fashion.onnx'
    monkeypatch.setattr(sys, 'argv', ['retrieval.py', str(model), f'--packages={packages}', '--engines=swizzle'])
    with pytest.raises(SystemExit, match='retrieval: .*models holds no tokenizer'):
        retrieval.main()


@needs_module
def test_both_engines_say_the_same_of_a_folder(tmp_path, packages, capsys):
    from tiny_encoder import write_encoder

    write_encoder(tmp_path / 'tiny', WORDS)
    tasks = retrieval_texts.Texts(packages).test()
    documents = tasks['manuals'].documents
    by_swizzle, by_onnx_runtime = (open_model(tmp_path / 'tiny', 1)(documents)
                                   for open_model in (retrieval.swizzle, retrieval.onnx_runtime))
    np.testing.assert_allclose(by_swizzle, retrieval.unit(by_onnx_runtime), atol=1e-5)
    results = retrieval.compare([tmp_path / 'tiny'], tasks, ['swizzle', 'onnxruntime'], 1)
    # Documents of a drawn encoder lie so close that roundings decide the order of some.
    assert results[0]['figures']['mean'] == pytest.approx(results[1]['figures']['mean'], abs=2)
    sys.argv[1:], argv = [str(tmp_path / 'tiny'), f'--packages={packages}', '-o', 'json', '--threads=1'], sys.argv[1:]
    try:
        retrieval.main()
    finally:
        sys.argv[1:] = argv
    printed = json.loads(capsys.readouterr().out)
    assert [result['engine'] for result in printed['results']] == ['swizzle', 'onnxruntime']
    assert printed['results'][0]['figures'] == results[0]['figures']
    assert '100.0 %' in retrieval.table(printed['results'])
