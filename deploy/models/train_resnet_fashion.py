#!/usr/bin/env python3
"""Trains a thin ResNet-18 on Fashion-MNIST, dense and 90 % sparse, and exports ONNX.

The network has the eight basic blocks of ResNet-18 (He et al., 2015) and a quarter of its channels, 16 to 128. Its
stem is a 3x3 convolution of stride 1 with no pooling after it, since the images have 28x28 pixels. All convolutions are
pruned but the stem; the classifier stays dense too. fashion_training.py says how both are trained.

Written to --out:
  resnet18_thin_fashion.onnx           the dense twin
  resnet18_thin_fashion_sparse90.onnx  the sparse model, zeros stored explicitly
  resnet18_thin_fashion.json           settings, figures per epoch and results

Both ONNX files take "image", float32 [batch, 1, 28, 28], pixels divided by 255 and nothing else, and give "logits",
float32 [batch, 10]. Batch normalization is folded into the convolutions.

Needs torch, onnx, onnxruntime and numpy, and in practice an NVIDIA GPU.

  python3 train_resnet_fashion.py --data=DIR --out=DIR
"""

import torch
from torch import nn

import fashion_training
from conv_bn import ConvBn, folded, initialise
from fashion_mnist import NUM_CLASSES

STAGES = ((16, 1), (32, 2), (64, 2), (128, 2))  # channels and stride of each two blocks


class BasicBlock(nn.Module):
    """Two 3x3 convolutions and a shortcut, which a 1x1 convolution fits to another shape."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.first = ConvBn(inputs, outputs, 3, stride, activation=nn.ReLU)
        self.second = ConvBn(outputs, outputs, 3, activation=nn.Identity)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = ConvBn(inputs, outputs, 1, stride, activation=nn.Identity)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.second(self.first(x)) + self.shortcut(x))


class ThinResNet18(nn.Module):
    """ResNet-18 with few channels, for 28x28 grayscale images."""

    def __init__(self, width=1.0):
        super().__init__()
        channels = max(8, round(STAGES[0][0] * width))
        self.stem = ConvBn(1, channels, 3, activation=nn.ReLU)
        self.blocks = nn.Sequential()
        for outputs, stride in STAGES:
            for block_stride in (stride, 1):
                self.blocks.append(BasicBlock(channels, max(8, round(outputs * width)), block_stride))
                channels = max(8, round(outputs * width))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, NUM_CLASSES)
        initialise(self, self.classifier)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(torch.flatten(x, 1))

    def prunable_weights(self):
        """Returns the weights of all convolutions but the stem: {layer name: parameter}."""
        return {name: module.conv.weight for name, module in self.blocks.named_modules()
                if isinstance(module, ConvBn)}

    def folded(self):
        """Returns a float32 copy on the CPU with batch norm folded in."""
        return folded(self)


def main():
    fashion_training.run(
        fashion_training.Classifier(
            title='Thin ResNet-18',
            file='resnet18_thin_fashion',
            make=ThinResNet18,
            is_prunable=lambda shape: shape[1] > 1,  # the stem has one input channel
            layers_key='convolutions',
        ),
        description=__doc__.split('\n', 1)[0],
    )


if __name__ == '__main__':
    main()
