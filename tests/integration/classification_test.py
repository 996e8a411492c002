"""Texts and pairs of them through a real server, which scores labels by a checkpoint's own classifier."""

import json
import shutil

import numpy
import onnx
import pytest
import tritonclient.grpc as triton
from tritonclient.utils import InferenceServerException

import make_encoders
from python_module import needs_module, swizzle_engine
from text_test import CHECKPOINT, WORDS, refusal, states_of, write_tokenizer

CONFIG = 'parameters { key: "text" value { string_value: "classification" } }'
PAIRS = [('the cat', 'a dog ran home'), ('a dog', ''), ('The cats sat on the mat.', 'a cat'), ('', 'mat')]
TEXTS = ['The cats sat on the mat.', 'a dog', 'ü', '']
LONGEST = 10  # positions of the checkpoint


def words_of(text):
    pieces = []
    for word in text.lower().replace('.', ' . ').split():
        split = word not in WORDS and word[-1] == 's' and word[:-1] in WORDS
        pieces += [word[:-1], '##s'] if split else [word if word in WORDS else '[UNK]']
    return [WORDS.index(piece) for piece in pieces]


def row_of(text, pair=None):
    """The ids of a row and their types, by hand; of a pair the longer text is cut off first, as `tokenizers` does."""
    cls, sep = WORDS.index('[CLS]'), WORDS.index('[SEP]')
    first, second = words_of(text), [] if pair is None else words_of(pair)
    most = LONGEST - (2 if pair is None else 3)
    if len(first) + len(second) > most:
        shorter, longer = (first, second) if len(first) <= len(second) else (second, first)
        del shorter[max(most // 2, most - len(longer)):]
        del longer[most - len(shorter):]
    ids = [cls, *first, sep, *second] + ([sep] if pair is not None else [])
    return ids, [0] * (len(first) + 2) + [1] * (len(ids) - len(first) - 2)


def read_tensors(file):
    data = file.read_bytes()
    size = int.from_bytes(data[:8], 'little')
    tensors = {}
    for name, its in json.loads(data[8:8 + size]).items():
        if name == '__metadata__':
            continue
        assert its['dtype'] == 'F32', name
        begin, end = its['data_offsets']
        tensors[name] = numpy.frombuffer(data[8 + size + begin:8 + size + end], numpy.float32).reshape(its['shape'])
    return tensors


def write_tensors(tensors, file):
    head, data = {}, b''
    for name, array in tensors.items():
        its = numpy.ascontiguousarray(array, numpy.float32).tobytes()
        head[name] = {'dtype': 'F32', 'shape': list(array.shape), 'data_offsets': [len(data), len(data) + len(its)]}
        data += its
    text = json.dumps(head).encode()
    file.write_bytes(len(text).to_bytes(8, 'little') + text + data)


def head_of(labels):
    random = numpy.random.default_rng(labels)
    return random.normal(size=(labels, 8)).astype(numpy.float32), random.normal(size=labels).astype(numpy.float32)


def write_classifier(folder, labels, **config):
    """A BertForSequenceClassification of a shipped encoder; its classifier's weight and bias are head_of(labels)."""
    folder.mkdir()
    its = json.loads((CHECKPOINT / 'config.json').read_text())
    its |= {'architectures': ['BertForSequenceClassification'], **config}
    (folder / 'config.json').write_text(json.dumps(its))
    tensors = {f'bert.{name}': array for name, array in read_tensors(CHECKPOINT / 'model.safetensors').items()}
    tensors['classifier.weight'], tensors['classifier.bias'] = head_of(labels)
    write_tensors(tensors, folder / 'model.safetensors')
    write_tokenizer(folder, WORDS, modules=False)
    return folder


def logits_of(client, rows, labels):
    """By hand of what the encoder alone says of the first token."""
    ids, types = [row[0] for row in rows], [row[1] for row in rows]
    states = states_of(client, 'ids', ids, types)
    tensors = read_tensors(CHECKPOINT / 'model.safetensors')
    pooled = [numpy.tanh(tensors['pooler.dense.weight'] @ each[0] + tensors['pooler.dense.bias']) for each in states]
    weight, bias = head_of(labels)
    return numpy.array(pooled) @ weight.T + bias


def softmax(logits):
    powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def sigmoid(logits):
    return 1 / (1 + numpy.exp(-logits))


def classify(client, model, rows, output='scores', classes=0):
    rows = [[row] if isinstance(row, str) else row for row in rows]
    tensor = triton.InferInput('text', [len(rows), len(rows[0])], 'BYTES')
    tensor.set_data_from_numpy(numpy.array([[text.encode() for text in row] for row in rows], dtype=numpy.object_))
    return client.infer(model, [tensor], outputs=[triton.InferRequestedOutput(output, classes)]).as_numpy(output)


@pytest.fixture
def encoder(tmp_path):
    folder = tmp_path / 'encoder'
    folder.mkdir()
    for name in ('config.json', 'model.safetensors'):
        shutil.copy(CHECKPOINT / name, folder)
    return folder


def test_texts_are_classified(start, repository, encoder, tmp_path):
    repository.folder('ids', encoder)
    names = {'0': 'no', '1': 'yes', '2': 'perhaps'}
    repository.folder('texts', write_classifier(tmp_path / 'texts', 3, id2label=names))
    repository.config('texts', CONFIG)
    repository.folder('many', write_classifier(tmp_path / 'many', 3, problem_type='multi_label_classification'))
    repository.config('many', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        metadata = client.get_model_metadata('texts', as_json=True)
        assert [(i['name'], i['datatype'], i['shape']) for i in metadata['inputs']] == [('text', 'BYTES', ['-1', '-1'])]
        assert [(o['name'], o['shape']) for o in metadata['outputs']] == [
            ('scores', ['-1', '3']), ('logits', ['-1', '3'])]
        logits = logits_of(client, [row_of(text) for text in TEXTS], 3)
        numpy.testing.assert_allclose(classify(client, 'texts', TEXTS), softmax(logits), atol=1e-5)
        numpy.testing.assert_allclose(classify(client, 'texts', TEXTS, 'logits'), logits, atol=1e-5)
        numpy.testing.assert_allclose(classify(client, 'many', TEXTS), sigmoid(logits), atol=1e-5)
        best = classify(client, 'texts', TEXTS, classes=1)
        assert [row[0].decode().split(':')[2] for row in best] == [names[str(i)] for i in logits.argmax(axis=1)]


def test_pairs_are_scored(start, encoder, tmp_path):
    reranker = write_classifier(tmp_path / 'reranker', 1)
    server = start(None, f'--model={reranker},text=classification', f'--model={encoder},name=ids')
    with triton.InferenceServerClient(server.grpc) as client:
        pairs = [*PAIRS, ('a dog ran to the mat', 'the cat sat on the mat . a dog ran'), ('b', 'c d ' * 20)]
        rows = [row_of(*pair) for pair in pairs]
        assert max(len(ids) for ids, _ in rows) == LONGEST
        logits = logits_of(client, rows, 1)
        numpy.testing.assert_allclose(classify(client, 'reranker', pairs, 'logits'), logits, atol=1e-5)
        numpy.testing.assert_allclose(classify(client, 'reranker', pairs), sigmoid(logits), atol=1e-5)
        with pytest.raises(InferenceServerException, match='3 texts in a row'):
            classify(client, 'reranker', [('a', 'b', 'c')])


def test_an_onnx_classifier_scores_texts(start, repository):
    """Its pooled states stand for the logits that an exporter writes."""
    model = make_encoders.build('bert_opset17')
    states = model.graph.output[0].name
    model.graph.initializer.append(onnx.numpy_helper.from_array(numpy.array(0), 'first'))
    model.graph.node.append(onnx.helper.make_node('Gather', [states, 'first'], ['logits'], axis=1))
    model.graph.output.append(onnx.helper.make_tensor_value_info('logits', onnx.TensorProto.FLOAT, ['n', None]))
    words = WORDS[:5] + [f'w{i}' for i in range(make_encoders.VOCABULARY - 5)]
    for served in ('ids', 'texts'):
        repository.file(served, 'model.onnx', model.SerializeToString())
    write_tokenizer(repository.directory / 'texts' / '1', words, modules=False)
    repository.config('texts', CONFIG)
    with triton.InferenceServerClient(start(repository).grpc) as client:
        rows = [[2, 7, 9, 3], [2, 40, 3]]
        texts = [' '.join(words[i] for i in row[1:-1]) for row in rows]
        expected = numpy.array([each[0] for each in states_of(client, 'ids', rows, output=states)])
        numpy.testing.assert_allclose(classify(client, 'texts', texts, 'logits'), expected, atol=1e-4)


@needs_module
def test_python_takes_texts_and_pairs(tmp_path):
    folder = write_classifier(tmp_path / 'texts', 3)
    with swizzle_engine.Model(folder / 'model.safetensors', text='classification', threads=1) as model:
        one = model('a cat')
        assert one['scores'].shape == one['logits'].shape == (1, 3)
        numpy.testing.assert_allclose(one['scores'], softmax(one['logits']), atol=1e-6)
        three = model(['a cat', 'a dog', b'the mat'])['logits']
        numpy.testing.assert_allclose(three[:1], one['logits'], atol=1e-6)
        pairs = model.run({'text': [['a cat', 'a dog'], ['the mat', '']]}, ['logits'])['logits']
        assert pairs.shape == (2, 3) and abs(pairs[0] - three[0]).max() > 1e-4
        with pytest.raises(ValueError, match='3 texts in a row'):
            model([['a', 'b', 'c']])


@pytest.mark.parametrize('config, said', [
    ({'architectures': ['BertModel']}, "it has no output 'logits'"),
    ({'id2label': {'0': 'a', '1': 'b', '2': 'c'}}, 'names 3 labels in id2label, but the classifier scores 2'),
    ({'problem_type': 'guessing'}, 'problem_type'),
])
def test_what_is_wrong_is_named(start, repository, encoder, tmp_path, config, said):
    repository.folder('texts', write_classifier(tmp_path / 'texts', 2, **config))
    repository.config('texts', CONFIG)
    repository.folder('fine', encoder)
    with triton.InferenceServerClient(start(repository, '--ready=any').grpc) as client:
        assert said in refusal(client)
