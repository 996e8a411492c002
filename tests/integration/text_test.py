"""Texts through a real server: unmodified clients send strings and get vectors, by a checkpoint's own tokeniser."""

import json
import pathlib
import shutil
import subprocess

import numpy
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import make_encoders
from conftest import program
from ensembles_test import ensemble, step
from python_module import needs_module, swizzle_engine

CHECKPOINT = pathlib.Path(__file__).resolve().parents[1] / 'testdata' / 'checkpoints' / 'bert'
WORDS = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'the', 'cat', 'sat', 'on', 'mat', '##s', 'a', 'dog', 'ran', '.',
         'home', 'to', 'b', 'c', 'd']
TEXTS = ['The cats sat on the mat.', 'a dog', 'A dog ran to the mat on the mat . the cat ran home', 'ü', '']
CONFIG = 'parameters { key: "text" value { string_value: "embedding" } }'


def ids_of(text, most):
    """By hand: words of the list, lower case, an s at their end a piece of its own."""
    ids = []
    for word in text.lower().replace('.', ' . ').split():
        whole = word in WORDS
        for piece in [word] if whole else [word[:-1], '##s'] if word[:-1] in WORDS and word[-1] == 's' else ['[UNK]']:
            ids.append(WORDS.index(piece))
    return [WORDS.index('[CLS]'), *ids[:most - 2], WORDS.index('[SEP]')]


def write_tokenizer(folder, words, modules=True, pooling='pooling_mode_mean_tokens', length=8):
    (folder / 'vocab.txt').write_text('\n'.join(words) + '\n')
    (folder / 'tokenizer_config.json').write_text('{"do_lower_case": true, "tokenizer_class": "BertTokenizer"}')
    if not modules:
        return
    types = ['Transformer', 'Pooling', 'Normalize']
    (folder / 'modules.json').write_text(json.dumps(
        [{'idx': i, 'name': str(i), 'path': f'{i}_{kind}' if i else '', 'type': f'sentence_transformers.models.{kind}'}
         for i, kind in enumerate(types)]))
    (folder / '1_Pooling').mkdir()
    (folder / '1_Pooling' / 'config.json').write_text(json.dumps({pooling: True}))
    (folder / 'sentence_bert_config.json').write_text(json.dumps({'max_seq_length': length, 'do_lower_case': False}))


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / 'tiny'
    folder.mkdir()
    for name in ('config.json', 'model.safetensors'):
        shutil.copy(CHECKPOINT / name, folder)
    return folder


def embed(client, model, texts, parameters=None):
    tensor = triton.InferInput('text', [len(texts), 1], 'BYTES')
    tensor.set_data_from_numpy(numpy.array([[text.encode()] for text in texts], dtype=numpy.object_))
    return client.infer(model, [tensor], parameters=parameters).as_numpy('embedding')


def states_of(client, model, rows, types=None, output='last_hidden_state'):
    """What the encoder says of ids: an array of states for each row."""
    longest = max(len(row) for row in rows)
    arrays = {'input_ids': [row + [0] * (longest - len(row)) for row in rows],
              'attention_mask': [[1] * len(row) + [0] * (longest - len(row)) for row in rows],
              'token_type_ids': [[*of, *[0] * (longest - len(of))] for of in types or [[]] * len(rows)]}
    tensors = []
    for name in (tensor.name for tensor in client.get_model_metadata(model).inputs):
        array = numpy.array(arrays[name], numpy.int64)
        tensors.append(triton.InferInput(name, array.shape, 'INT64'))
        tensors[-1].set_data_from_numpy(array)
    states = client.infer(model, tensors).as_numpy(output)
    return [states[i, :len(row)] for i, row in enumerate(rows)]


def properties(server, model):
    done = subprocess.run([program('swizzle'), 'metadata', model, f'--address={server.grpc}', '-o', 'json'], check=True,
                          capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout)['properties']


def unit(vectors):
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True)


def test_texts_are_embedded_as_their_tokens_are_pooled(start, repository, checkpoint):
    repository.folder('ids', checkpoint)
    write_tokenizer(checkpoint, WORDS)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        metadata = client.get_model_metadata('texts', as_json=True)
        assert [(i['name'], i['datatype'], i['shape']) for i in metadata['inputs']] == [('text', 'BYTES', ['-1', '1'])]
        assert [(o['name'], o['shape']) for o in metadata['outputs']] == [('embedding', ['-1', '8'])]
        ids = [ids_of(text, 8) for text in TEXTS]
        expected = unit(numpy.array([states.mean(axis=0) for states in states_of(client, 'ids', ids)]))
        got = embed(client, 'texts', TEXTS)
        assert got.shape == (len(TEXTS), 8)
        numpy.testing.assert_allclose(got, expected, atol=1e-5)
        numpy.testing.assert_allclose(embed(client, 'texts', TEXTS[1:2]), expected[1:2], atol=1e-5)


@pytest.mark.parametrize('family, pooling', [('modernbert', 'mean_tokens'), ('nomic_bert', 'mean_tokens'),
                                             ('qwen2', 'lasttoken'), ('qwen3', 'lasttoken')])
def test_families_with_rotary_embeddings_take_texts(start, repository, tmp_path, family, pooling):
    """Each text has the vector that its tokens have alone, whatever it is sent with."""
    folder = tmp_path / family
    folder.mkdir()
    for name in ('config.json', 'model.safetensors'):
        shutil.copy(CHECKPOINT.parent / family / name, folder)
    repository.folder('ids', folder)
    write_tokenizer(folder, WORDS, pooling=f'pooling_mode_{pooling}')
    repository.folder('texts', folder)
    repository.config('texts', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        states = [states_of(client, 'ids', [ids_of(text, 8)])[0] for text in TEXTS]
        expected = unit(numpy.array([its[-1] if pooling == 'lasttoken' else its.mean(axis=0) for its in states]))
        numpy.testing.assert_allclose(embed(client, 'texts', TEXTS), expected, atol=1e-5)


def test_a_model_by_itself_takes_texts(start, checkpoint, tmp_path):
    write_tokenizer(checkpoint, WORDS, pooling='pooling_mode_cls_token', length=5)
    server = start(None, f'--model={checkpoint},name=texts,text=embedding', f'--model={checkpoint},name=ids')
    with triton.InferenceServerClient(server.grpc) as client:
        states = states_of(client, 'ids', [ids_of(text, 5) for text in TEXTS])
        expected = unit(numpy.array([each[0] for each in states]))
        numpy.testing.assert_allclose(embed(client, 'texts', TEXTS), expected, atol=1e-5)


def test_an_onnx_encoder_takes_texts(start, repository, checkpoint):
    name = 'bert_opset17'
    model = make_encoders.build(name).SerializeToString()
    words = WORDS[:5] + [f'w{i}' for i in range(make_encoders.VOCABULARY - 5)]
    for served in ('ids', 'texts'):
        repository.file(served, 'model.onnx', model)
    write_tokenizer(repository.directory / 'texts' / '1', words, modules=False)
    repository.config('texts', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        rows = [[2, 7, 9, 3], [2, 40, 3]]
        texts = [' '.join(words[i] for i in row[1:-1]) for row in rows]
        states = states_of(client, 'ids', rows)
        expected = numpy.array([each.mean(axis=0) for each in states])
        numpy.testing.assert_allclose(embed(client, 'texts', texts), expected, atol=1e-4)


def test_the_last_token_may_stand_for_a_text(start, repository, checkpoint):
    repository.folder('ids', checkpoint)
    write_tokenizer(checkpoint, WORDS, pooling='pooling_mode_lasttoken')
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    server = start(repository)
    its = properties(server, 'texts')
    assert its['swizzle_pooling'] == 'last_token' and 'swizzle_fallback' not in its, 'it is planned'
    with triton.InferenceServerClient(server.grpc) as client:
        ids = [ids_of(text, 8) for text in TEXTS]
        expected = unit(numpy.array([states[-1] for states in states_of(client, 'ids', ids)]))
        numpy.testing.assert_allclose(embed(client, 'texts', TEXTS), expected, atol=1e-5)


@pytest.mark.parametrize('pooling', ['mean_tokens', 'cls_token', 'lasttoken'])
def test_a_packed_encoder_takes_texts(start, repository, checkpoint, pooling):
    write_tokenizer(checkpoint, WORDS, pooling=f'pooling_mode_{pooling}')
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    repository.folder('packed', checkpoint)
    repository.config('packed', CONFIG)
    packed = repository.directory / 'packed' / '1'
    subprocess.run([program('swizzle-pack'), 'pack', checkpoint, packed / 'model.swz'], check=True, timeout=300)
    (packed / 'model.safetensors').unlink()
    with triton.InferenceServerClient(start(repository).grpc) as client:
        numpy.testing.assert_allclose(embed(client, 'packed', TEXTS), embed(client, 'texts', TEXTS), atol=1e-5)


@pytest.mark.parametrize('said, longest', [
    ({'tokenizer_config.json': {'model_max_length': 6}}, 6),
    ({'tokenizer_config.json': {'model_max_length': 6}, 'sentence_bert_config.json': {'max_seq_length': 7}}, 7),
    ({'tokenizer_config.json': {'model_max_length': 1e30}}, 10),
])
def test_how_long_a_text_may_be(start, checkpoint, said, longest):
    """By the pipeline's file, else the tokeniser's, and no longer than the encoder has positions."""
    write_tokenizer(checkpoint, WORDS, modules=False)
    for name, settings in said.items():
        file = checkpoint / name
        file.write_text(json.dumps((json.loads(file.read_text()) if file.exists() else {}) | settings))
    server = start(None, f'--model={checkpoint},name=texts,text=embedding')
    with triton.InferenceServerClient(server.grpc) as client:
        assert properties(server, 'texts')['swizzle_max_tokens'] == str(longest)
        assert embed(client, 'texts', ['the cat sat on the mat . a dog ran home']).shape == (1, 8)


def test_what_would_be_cut_may_be_refused(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        fits, cut = 'a dog ran home .', 'a dog ran home to the mat'
        embed(client, 'texts', [fits], {'swizzle_truncate': False})
        embed(client, 'texts', [cut], {'swizzle_truncate': True})
        with pytest.raises(InferenceServerException, match='element 1 .* the text has 9 tokens; at most 8') as refused:
            embed(client, 'texts', [fits, cut], {'swizzle_truncate': False})
        assert refused.value.status() == 'StatusCode.OUT_OF_RANGE'
        with pytest.raises(InferenceServerException, match="'swizzle_truncate' must be true or false"):
            embed(client, 'texts', [fits], {'swizzle_truncate': 1})


@needs_module
def test_python_says_what_becomes_of_texts(checkpoint):
    write_tokenizer(checkpoint, WORDS)
    (checkpoint / 'config_sentence_transformers.json').write_text(json.dumps({'prompts': {'query': 'the cat '}}))
    with swizzle_engine.Model(checkpoint, text='embedding', threads=1) as model:
        cut = 'a dog ran home to the mat'
        assert model.run({'text': cut})['embedding'].shape == (1, 8)
        with pytest.raises(ValueError, match='the text has 9 tokens; at most 8'):
            model.run({'text': ['a dog', cut]}, truncate=False)
        numpy.testing.assert_allclose(model.run({'text': 'sat'}, prompt_name='query')['embedding'],
                                      model('the cat sat')['embedding'], atol=1e-6)
        with pytest.raises(ValueError, match="the model has no prompt 'passage'; it has 'query'"):
            model.run({'text': 'sat'}, prompt_name='passage')
    with swizzle_engine.Model(checkpoint, threads=1) as model:
        with pytest.raises(TypeError, match='takes no texts'):
            model.run({}, truncate=False)


def test_an_ensemble_hands_on_what_a_request_says_of_texts(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    (checkpoint / 'config_sentence_transformers.json').write_text(json.dumps({'prompts': {'query': 'the cat '}}))
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG + ' max_batch_size: 8')
    repository.config('chain', ensemble({'text': ('TYPE_STRING', '[ 1 ]')}, {'embedding': ('TYPE_FP32', '[ 8 ]')},
                                        [step('texts', {'text': 'text'}, {'embedding': 'embedding'})]))
    with triton.InferenceServerClient(start(repository).grpc) as client:
        cut = 'a dog ran home to the mat'
        assert embed(client, 'chain', [cut]).shape == (1, 8)
        with pytest.raises(InferenceServerException, match='the text has 9 tokens; at most 8') as refused:
            embed(client, 'chain', [cut], {'swizzle_truncate': False})
        assert refused.value.status() == 'StatusCode.OUT_OF_RANGE'
        numpy.testing.assert_allclose(embed(client, 'chain', ['sat'], {'swizzle_prompt': 'query'}),
                                      embed(client, 'texts', ['the cat sat']), atol=1e-5)


def refusal(client):
    index = {model.name: model for model in client.get_model_repository_index().models}
    return index['texts'].reason


@pytest.mark.parametrize('breaks, said', [
    (lambda folder: (folder / 'vocab.txt').unlink(), 'tokenizer.json'),
    (lambda folder: (folder / '1_Pooling' / 'config.json').write_text('{"pooling_mode_max_tokens": true}'),
     'pooling_mode_max_tokens is not supported'),
])
def test_what_is_missing_is_named(start, repository, checkpoint, breaks, said):
    write_tokenizer(checkpoint, WORDS)
    breaks(checkpoint)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    repository.folder('fine', CHECKPOINT)
    with triton.InferenceServerClient(start(repository, '--ready=any').grpc) as client:
        assert said in refusal(client)


def test_a_wrong_request_spoils_nothing(start, repository, checkpoint):
    write_tokenizer(checkpoint, WORDS)
    repository.folder('texts', checkpoint)
    repository.config('texts', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        before = embed(client, 'texts', TEXTS)
        tensor = triton.InferInput('input_ids', [1, 4], 'INT64')
        tensor.set_data_from_numpy(numpy.ones((1, 4), numpy.int64))
        with pytest.raises(InferenceServerException, match='input_ids'):
            client.infer('texts', [tensor])
        assert embed(client, 'texts', ['the cat ' * 100000]).shape == (1, 8)
        numpy.testing.assert_array_equal(embed(client, 'texts', TEXTS), before)
