#!/usr/bin/env python3
"""Writes the models in this folder: small ones with drawn weights, as PyTorch exports them.

    pip install torch==2.5.1 torchvision==0.20.1 transformers==4.46.3 onnx==1.16.2 'numpy<2'
    python3 make_exports.py

and, of families that are newer and with the exporter that is, too:

    pip install torch==2.15.0 torchvision transformers==4.57.6 onnx==1.23.2 onnxscript==0.7.2
    python3 make_exports.py --newer

Tests read the files, and need none of these libraries.
"""

import pathlib
import sys

import onnx
import torch
import torchvision
import transformers
from torch import nn

HERE = pathlib.Path(__file__).resolve().parent
VOCABULARY = 40
TEXT = {'vocab_size': VOCABULARY, 'hidden_size': 16, 'num_hidden_layers': 1, 'num_attention_heads': 2,
        'intermediate_size': 32, 'max_position_embeddings': 40}
VISION = {'hidden_size': 16, 'num_hidden_layers': 1, 'num_attention_heads': 2, 'intermediate_size': 32,
          'image_size': 32, 'patch_size': 8}
EAGER = {'attn_implementation': 'eager'}  # what opsets before 14 can say


class FirstOutput(nn.Module):
    """Of a model of transformers, by position: ids and mask, or pixels alone."""

    def __init__(self, model, *names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False)[0]


class ChosenOutput(nn.Module):
    """The output of this name."""

    def __init__(self, model, *names, output):
        super().__init__()
        self.model, self.names, self.output = model, names, output

    def forward(self, *inputs):
        return getattr(self.model(**dict(zip(self.names, inputs)), return_dict=True), self.output)


def text(model):
    ids = torch.randint(3, VOCABULARY, (2, 7))
    return FirstOutput(model, 'input_ids', 'attention_mask'), {'input_ids': ids, 'attention_mask': torch.ones_like(ids)}


def vision(model):
    return FirstOutput(model, 'pixel_values'), {'pixel_values': torch.randn(2, 3, 32, 32)}


def plain(model, *shape):
    return model, {'x': torch.randn(2, *shape)}


def bert():
    return text(transformers.BertModel(transformers.BertConfig(**TEXT, **EAGER)))


def bert_sdpa():
    return text(transformers.BertModel(transformers.BertConfig(**TEXT, attn_implementation='sdpa')))


def roberta():
    return text(transformers.RobertaModel(transformers.RobertaConfig(**TEXT, **EAGER)))


def camembert():
    config = transformers.CamembertConfig(**TEXT, **EAGER, num_labels=3)
    return text(transformers.CamembertForTokenClassification(config))


def electra():
    return text(transformers.ElectraModel(transformers.ElectraConfig(**TEXT, **EAGER, embedding_size=8)))


def distilbert():
    config = transformers.DistilBertConfig(vocab_size=VOCABULARY, dim=16, n_layers=1, n_heads=2, hidden_dim=32,
                                           max_position_embeddings=40, **EAGER)
    return text(transformers.DistilBertForSequenceClassification(config))


def mpnet():
    return text(transformers.MPNetModel(transformers.MPNetConfig(**TEXT, **EAGER)))


def t5():
    config = transformers.T5Config(vocab_size=VOCABULARY, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2)
    return text(transformers.T5EncoderModel(config))


GROUPED = {**TEXT, 'num_attention_heads': 4, 'num_key_value_heads': 2, 'head_dim': 8, 'use_cache': False}


def modernbert():
    """The first layer attends to all, the other to those near."""
    special = {name: 0 for name in ('pad_token_id', 'bos_token_id', 'eos_token_id', 'cls_token_id', 'sep_token_id')}
    config = transformers.ModernBertConfig(**{**TEXT, 'num_hidden_layers': 2}, **special, local_attention=8,
                                           reference_compile=False, attn_implementation='sdpa')
    return text(transformers.ModernBertModel(config))


def qwen3():
    return text(transformers.Qwen3Model(transformers.Qwen3Config(**GROUPED)))


def gemma3():
    """As an encoder of texts, which attends to those near; all heads share one of keys and values."""
    config = transformers.Gemma3TextConfig(**{**GROUPED, 'num_key_value_heads': 1}, sliding_window=6,
                                           use_bidirectional_attention=True, layer_types=['sliding_attention'])
    return text(transformers.Gemma3TextModel(config))


def deberta():
    """DeBERTa-v3: places of tokens far apart are shared, queries and keys share the projections of places."""
    config = transformers.DebertaV2Config(**{**TEXT, 'num_hidden_layers': 2}, type_vocab_size=0, position_buckets=4,
                                          relative_attention=True, share_att_key=True, pos_att_type=['p2c', 'c2p'],
                                          norm_rel_ebd='layer_norm', position_biased_input=False)
    return text(transformers.DebertaV2Model(config))


def vit():
    return vision(transformers.ViTModel(transformers.ViTConfig(**VISION, **EAGER)))


def swin():
    config = transformers.SwinConfig(image_size=32, patch_size=4, embed_dim=8, depths=[2, 1], num_heads=[1, 2],
                                     window_size=4)
    return vision(transformers.SwinModel(config))


def convnext():
    return vision(transformers.ConvNextModel(transformers.ConvNextConfig(hidden_sizes=[8, 16], depths=[1, 1],
                                                                         num_stages=2)))


def segformer():
    config = transformers.SegformerConfig(num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[8, 16],
                                          patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2],
                                          mlp_ratios=[2, 2], decoder_hidden_size=16, num_labels=3)
    return vision(transformers.SegformerForSemanticSegmentation(config))


def shufflenet():
    return plain(torchvision.models.ShuffleNetV2([1, 2, 1], [8, 16, 16, 32, 32], num_classes=5), 3, 64, 64)


def densenet():
    return plain(torchvision.models.DenseNet(8, (1, 2), 8, num_classes=5), 3, 64, 64)


def pools():
    """Windows that ceil_mode lets the end cut off, before a head."""
    return plain(nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True),
                               nn.Conv2d(8, 8, 3), nn.Hardswish(), nn.AvgPool2d(3, 2, 1, ceil_mode=True),
                               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5), nn.LogSoftmax(-1)), 3, 30, 34)


def upsampled():
    """What decoders of images do."""
    return plain(nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.SiLU(), nn.Upsample(scale_factor=2),
                               nn.ZeroPad2d((1, 0, 0, 1)), nn.Conv2d(8, 8, 2), nn.Hardtanh(-1, 1),
                               nn.ConvTranspose2d(8, 4, 2, 2)), 3, 16, 24)


NEWER_VISION = {**VISION, 'num_hidden_layers': 2}


def clip_text():
    """Read at the first token of one id, perhaps there is none."""
    config = transformers.CLIPTextConfig(**(TEXT | {'num_hidden_layers': 2}), projection_dim=8, pad_token_id=0,
                                         bos_token_id=1, eos_token_id=38)
    return text(transformers.CLIPTextModelWithProjection(config))


def vit_torchvision():
    """Whose attention is torch.nn.MultiheadAttention, length first."""
    return plain(torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 32, num_classes=5), 3, 32, 32)


def swin_torchvision():
    """Activations are [batch, height, width, channels]."""
    return plain(torchvision.models.SwinTransformer([4, 4], 8, [2], [2], [4, 4], num_classes=5), 3, 32, 32)


def swin_v2_torchvision():
    """Scores are cosines with a factor for each head."""
    transformer = torchvision.models.swin_transformer
    return plain(torchvision.models.SwinTransformer([4, 4], 8, [2], [2], [4, 4], num_classes=5,
                                                    block=transformer.SwinTransformerBlockV2,
                                                    downsample_layer=transformer.PatchMergingV2), 3, 32, 32)


def dinov2():
    """With registers, which stand between the class token and the patches."""
    config = transformers.Dinov2WithRegistersConfig(**NEWER_VISION, mlp_ratio=2, num_register_tokens=2)
    return vision(transformers.Dinov2WithRegistersModel(config))


def dinov3():
    """Rotary embeddings turn the patches, not the class token and the registers."""
    return vision(transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**NEWER_VISION, num_register_tokens=2)))


def siglip():
    """One query attends to all tokens."""
    model = transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**NEWER_VISION))
    return ChosenOutput(model, 'pixel_values', output='pooler_output'), {'pixel_values': torch.randn(2, 3, 32, 32)}


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 12, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(24, 12, batch_first=True)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        return torch.softmax(self.head(self.gru(self.lstm(x)[0])[0]), -1)


def recurrent():
    return plain(Recurrent(), 9, 8)


# Each with the opsets it is exported for.
EXPORTS = {bert: (11, 17), bert_sdpa: (14,), roberta: (11, 17), camembert: (14,), electra: (12,), distilbert: (14,),
           mpnet: (13,), t5: (12,), vit: (11, 17), swin: (11,), convnext: (17,), segformer: (12,), shufflenet: (11,),
           densenet: (9,), pools: (10, 17), upsampled: (11, 16), recurrent: (11, 17)}
NEWER = {modernbert: (17, 20), qwen3: (20,), gemma3: (20,), deberta: (17, 20), clip_text: (17, 20),
         vit_torchvision: (17, 20), swin_torchvision: (17,), swin_v2_torchvision: (17,), dinov2: (20,),
         dinov3: (20,), siglip: (17, 20)}
DYNAMO = 18  # from this opset on exporters trace by torch.export


def free_axes(name):
    """The batch is free, and the length of texts."""
    return {0: 'batch', 1: 'sequence'} if name.startswith(('input_ids', 'attention_mask')) else {0: 'batch'}


@torch.no_grad()
def redraw(model):
    """Weights as small as training begins with, norms that do nothing and biases of zero would hide mistakes."""
    for parameter in model.parameters():
        if parameter.dim() < 2:
            parameter.add_(0.1 * torch.randn_like(parameter))
        else:
            nn.init.normal_(parameter, std=parameter[0].numel() ** -0.5)


def free_shapes(name):
    return {axis: torch.export.Dim(label, min=2, max=64) for axis, label in free_axes(name).items()}


def write(build, opset):
    torch.manual_seed(1)
    model, inputs = build()
    model.eval()
    redraw(model)
    if opset < DYNAMO:
        how = {'dynamic_axes': {name: free_axes(name) for name in inputs}}
        how |= {'dynamo': False} if build in NEWER else {}
    else:
        shapes = tuple(free_shapes(name) for name in inputs)
        takes_any = isinstance(model, (FirstOutput, ChosenOutput))  # inputs are one tuple
        how = {'dynamic_shapes': (shapes,) if takes_any else shapes, 'dynamo': True, 'external_data': False}
    file = HERE / f'{build.__name__}_opset{opset}.onnx'
    torch.onnx.export(model, tuple(inputs.values()), file, input_names=list(inputs), output_names=['output'],
                      opset_version=opset, **how)
    exported = onnx.load(file)
    for part in (*exported.graph.node, *exported.graph.value_info, *exported.graph.initializer):
        part.ClearField('metadata_props')  # where in which source each came from
    onnx.save(exported, file)


if __name__ == '__main__':
    for build, opsets in (NEWER if '--newer' in sys.argv else EXPORTS).items():
        for opset in opsets:
            write(build, opset)
