"""Scores over HTTP, as unmodified clients of text-embeddings-inference ask for them: /rerank, /predict and /info."""

import json
import urllib.error
import urllib.request

import huggingface_hub
import numpy
import pytest
import tritonclient.grpc as triton

from classification_test import CONFIG, LONGEST, classify, encoder, write_classifier
from embeddings_test import post
from text_test import CONFIG as EMBEDDING, WORDS, write_tokenizer

__all__ = ['encoder']  # a fixture
LABELS = {'0': 'no', '1': 'yes', '2': 'perhaps'}
LONG = 'the cat sat on the mat . a dog ran home'  # of more tokens than the checkpoint has positions


def get(server, path):
    try:
        with urllib.request.urlopen(f'http://{server.rest}{path}', timeout=30) as response:
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


@pytest.fixture
def reranker(start, repository, tmp_path):
    repository.folder('reranker', write_classifier(tmp_path / 'reranker', 1))
    repository.config('reranker', CONFIG + ' max_batch_size: 4')
    return start(repository, '--http-address=127.0.0.1:0')


@pytest.fixture
def classifier(start, repository, tmp_path):
    repository.folder('classifier', write_classifier(tmp_path / 'classifier', 3, id2label=LABELS))
    repository.config('classifier', CONFIG + ' max_batch_size: 4')
    return start(repository, '--http-address=127.0.0.1:0')


def by_grpc(server, model, rows, output='scores'):
    with triton.InferenceServerClient(server.grpc) as client:
        return numpy.concatenate([classify(client, model, [row], output) for row in rows])


@pytest.mark.parametrize('count', [1, 4, 50])
def test_texts_are_ranked(reranker, count):
    texts = [' '.join(WORDS[5 + (i + k) % 15] for k in range(i % 6)) for i in range(count)]
    for raw in (False, True):
        scores = by_grpc(reranker, 'reranker', [('a cat', text) for text in texts], 'logits' if raw else 'scores')[:, 0]
        body = {'query': 'a cat', 'texts': texts, 'raw_scores': raw, 'truncate': True}
        status, ranks = post(reranker, '/rerank', body)
        assert status == 200 and all(set(rank) == {'index', 'score'} for rank in ranks), ranks
        assert sorted(rank['index'] for rank in ranks) == list(range(count))
        numpy.testing.assert_allclose([rank['score'] for rank in ranks], scores[[rank['index'] for rank in ranks]],
                                      atol=1e-5)
        assert [rank['score'] for rank in ranks] == sorted((rank['score'] for rank in ranks), reverse=True)
    status, ranks = post(reranker, '/rerank', {'query': 'a cat', 'texts': texts, 'return_text': True, 'truncate': True})
    assert status == 200 and all(rank['text'] == texts[rank['index']] for rank in ranks)


def test_a_long_query_stands_before_every_text(reranker):
    query, texts = 'the cat ' * 50000, [f'a {word}' for word in WORDS[5:]]
    status, ranks = post(reranker, '/rerank', {'query': query, 'texts': texts, 'truncate': True})
    assert status == 200
    scores = by_grpc(reranker, 'reranker', [(query, text) for text in texts])[:, 0]
    numpy.testing.assert_allclose([rank['score'] for rank in ranks], scores[[rank['index'] for rank in ranks]],
                                  atol=1e-5)


def test_a_request_has_bounds(start, repository, tmp_path):
    repository.folder('reranker', write_classifier(tmp_path / 'reranker', 1))
    repository.config('reranker', CONFIG + ' max_batch_size: 4')
    server = start(repository, '--http-address=127.0.0.1:0', '--max-message-bytes=65536')
    query, texts = 'the cat ' * 100, ['a']
    assert post(server, '/rerank', {'query': query, 'texts': texts * 9, 'truncate': True})[0] == 200
    status, answer = post(server, '/rerank', {'query': query, 'texts': texts * 1400})
    assert status == 413 and 'before each of 1400 texts, has more than 1048576 bytes' in answer['error']
    server = start(repository, '--http-address=127.0.0.1:0', '--max-deadline=0.01')
    status, answer = post(server, '/rerank', {'query': 'a', 'texts': texts * 20000})
    assert (status, answer['error_type']) == (504, 'Backend'), answer


def test_labels_are_predicted(classifier):
    def expected(rows, output='scores'):
        return by_grpc(classifier, 'classifier', rows, output)

    def check(predictions, scores):
        assert [its['score'] for its in predictions] == sorted((its['score'] for its in predictions), reverse=True)
        got = {its['label']: its['score'] for its in predictions}
        numpy.testing.assert_allclose([got[LABELS[str(i)]] for i in range(3)], scores, atol=1e-5)

    for inputs, row in (('a cat', ['a cat']), (['a cat'], ['a cat']), (['a cat', 'the mat'], ['a cat', 'the mat'])):
        status, predictions = post(classifier, '/predict', {'inputs': inputs})
        assert status == 200, predictions
        check(predictions, expected([row])[0])
    rows = [['a cat'], ['a cat', 'the mat'], ['the mat', 'a cat'], ['a dog']] * 9
    status, predictions = post(classifier, '/predict', {'inputs': rows, 'raw_scores': True})
    assert status == 200 and len(predictions) == len(rows)
    for its, scores in zip(predictions, expected(rows, 'logits')):
        check(its, scores)


def test_single_texts_and_pairs_may_alternate(classifier):
    rows = [['a cat', 'the mat'], ['a cat'], ['a dog']] * 9 + [['a dog', 'home']]
    status, predictions = post(classifier, '/predict', {'inputs': rows, 'raw_scores': True})
    assert status == 200 and len(predictions) == len(rows)
    for its, scores in zip(predictions, by_grpc(classifier, 'classifier', rows, 'logits')):
        got = {label['label']: label['score'] for label in its}
        numpy.testing.assert_allclose([got[LABELS[str(i)]] for i in range(3)], scores, atol=1e-5)
    rows[3] = ['a cat', LONG]
    status, answer = post(classifier, '/predict', {'inputs': rows, 'truncate': False})
    assert status == 413 and 'pair 1 of input' in answer['error']
    assert '(of the pairs from number 0 on)' in answer['error']


def test_huggingfaces_client_classifies(classifier):
    scores = by_grpc(classifier, 'classifier', [['a cat']])[0]
    best = huggingface_hub.InferenceClient(f'http://{classifier.rest}/predict').text_classification('a cat')
    best = best[0] if isinstance(best, list) else best  # it expects a list for one text, too
    assert best.label == LABELS[str(scores.argmax())]
    assert best.score == pytest.approx(scores.max(), abs=1e-5)


def test_what_would_be_cut_may_be_refused(start, repository, reranker, encoder):
    for body in ({'query': 'a cat', 'texts': [LONG]}, {'query': LONG, 'texts': ['a cat']}):
        assert post(reranker, '/rerank', body | {'truncate': True})[0] == 200
        assert post(reranker, '/rerank', body)[0] == 413, 'as text-embeddings-inference does'
    assert post(reranker, '/rerank', {'query': 'a cat', 'texts': ['a dog'], 'truncate': False})[0] == 200
    status, answer = post(reranker, '/rerank', {'query': 'a cat', 'texts': ['a dog'] * 9 + [LONG], 'truncate': False})
    assert status == 413 and answer['error_type'] == 'Validation'
    assert f'the pair of texts has 16 tokens; at most {LONGEST} may be' in answer['error']
    assert '(of the texts from number 8 on)' in answer['error'] and 'pair 1 of input' in answer['error']
    status, answer = post(reranker, '/predict', {'inputs': LONG, 'truncate': False})
    assert status == 413 and 'the text has 13 tokens; at most 10 may be' in answer['error']
    write_tokenizer(encoder, WORDS)
    repository.folder('embedder', encoder)
    repository.config('embedder', EMBEDDING)
    server = start(repository, '--http-address=127.0.0.1:0')
    assert post(server, '/embed', {'inputs': ['a cat'], 'truncate': False})[0] == 200
    status, answer = post(server, '/embed', {'inputs': ['a cat', LONG], 'truncate': False})
    assert (status, answer['error_type']) == (413, 'Validation')
    assert 'the text has 13 tokens; at most 8 may be' in answer['error']


def test_a_server_says_what_it_is(start, repository, tmp_path, reranker, encoder):
    status, info = get(reranker, '/info')
    assert status == 200
    assert info['model_id'] == 'reranker' and info['model_dtype'] == 'float32' and info['max_input_length'] == LONGEST
    assert info['model_type'] == {'reranker': {'id2label': {'0': 'LABEL_0'}, 'label2id': {'LABEL_0': 0}}}
    assert info['max_batch_requests'] == 4 and info['auto_truncate'] is False
    assert get(reranker, '/health') == (200, {'ready': True})
    write_tokenizer(encoder, WORDS)
    server = start(None, f'--model={encoder},text=embedding', '--http-address=127.0.0.1:0')
    assert get(server, '/info')[1]['model_type'] == {'embedding': {'pooling': 'mean'}}
    repository.folder('classifier', write_classifier(tmp_path / 'classifier', 3, id2label=LABELS))
    repository.config('classifier', CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = get(server, '/info')
    assert status == 400
    assert "several models take texts: 'classifier', 'reranker'; say which by the path: " in answer['error']
    assert answer['error_type'] == 'Validation'
    assert get(server, '/v2/models/reranker/info')[1]['model_id'] == 'reranker'
    assert list(get(server, '/v2/models/classifier/info')[1]['model_type']) == ['classifier']
    assert get(server, '/v2/models/nobody/info')[0] == 404


def test_a_path_may_say_which_model(start, repository, tmp_path):
    for name in ('one', 'two'):
        repository.folder(name, write_classifier(tmp_path / name, 1))
        repository.config(name, CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    body = {'query': 'a cat', 'texts': ['a dog']}
    status, answer = post(server, '/rerank', body)
    assert status == 400 and "'one', 'two'; say which by the path: /v2/models/NAME/rerank" in answer['error']
    assert post(server, '/v2/models/one/rerank', body)[0] == 200
    assert post(server, '/v2/models/two/predict', {'inputs': 'a cat'})[0] == 200
    status, answer = post(server, '/v2/models/one/embed', {'inputs': 'a cat'})
    assert status == 400 and "'one' takes texts, but is none that gives vectors" in answer['error']


def test_each_is_asked_what_it_does(start, repository, tmp_path, encoder):
    """One of each kind serves side by side, and whoever names no model gets the one that does what is asked for."""
    write_tokenizer(encoder, WORDS)
    repository.folder('embedder', encoder)
    repository.config('embedder', EMBEDDING)
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = post(server, '/predict', {'inputs': 'a cat'})
    assert (status, answer['error']) == (404, 'no model is served that scores labels of texts (text=classification)')
    repository.folder('classifier', write_classifier(tmp_path / 'classifier', 3, id2label=LABELS))
    repository.config('classifier', CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    status, answer = post(server, '/rerank', {'query': 'a cat', 'texts': ['a dog']})
    assert status == 404 and 'by one label' in answer['error']
    assert post(server, '/predict', {'inputs': 'a cat'})[0] == 200
    assert post(server, '/embed', {'inputs': 'a cat'})[0] == 200
    repository.folder('reranker', write_classifier(tmp_path / 'reranker', 1))
    repository.config('reranker', CONFIG)
    server = start(repository, '--http-address=127.0.0.1:0')
    assert post(server, '/rerank', {'query': 'a cat', 'texts': ['a dog']})[0] == 200
    status, answer = post(server, '/predict', {'inputs': 'a cat'})
    assert status == 200 and {its['label'] for its in answer} == set(LABELS.values())
    status, answer = post(server, '/v1/embeddings', {'input': 'a cat', 'model': 'classifier'})
    assert status == 400 and "'classifier' takes texts, but is none that gives vectors" in answer['error']['message']


@pytest.mark.parametrize('path, body, said', [
    ('/rerank', {'texts': ['a']}, "must have 'query'"),
    ('/rerank', {'query': 'a'}, "must have 'texts'"),
    ('/rerank', {'query': 'a', 'texts': []}, "'texts' must not be empty"),
    ('/rerank', {'query': 'a', 'texts': [1]}, 'element 0 is neither'),
    ('/rerank', [], 'must be a JSON object'),
    ('/predict', {'inputs': []}, "'inputs' must not be empty"),
    ('/predict', {'inputs': [['a', 'b', 'c']]}, 'a pair of them'),
    ('/predict', {'inputs': 'a', 'truncate': 'yes'}, "'truncate' must be true or false"),
])
def test_what_is_wrong_is_said(reranker, path, body, said):
    status, answer = post(reranker, path, body)
    assert (status, answer['error_type']) == (400, 'Validation') and said in answer['error']
    assert post(reranker, '/rerank', {'query': 'a cat', 'texts': ['a dog']})[0] == 200
