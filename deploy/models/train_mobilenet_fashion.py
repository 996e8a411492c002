#!/usr/bin/env python3
"""Trains MobileNetV1 on Fashion-MNIST, dense and 90 % sparse, and exports ONNX.

Two networks are trained, one after the other:

1. The dense twin: MobileNetV1 (Howard et al., 2017) adapted to 28x28 grayscale
   images, trained from scratch.
2. The sparse model: starts from the dense twin. Gradual magnitude pruning with
   a cubic schedule (Zhu and Gupta, 2017) zeroes 90 % of the weights of every
   1x1 convolution, each layer by itself; then the masks stay fixed while the
   surviving weights are fine-tuned. The dense twin teaches throughout
   (knowledge distillation, Hinton et al., 2015).

The stem, the depthwise convolutions and the classifier stay dense.

The last epoch's weights are the result. The test set is only measured: no
choice of weights, epoch or setting looks at it.

Written to --out:
  mobilenet_v1_fashion.onnx           the dense twin
  mobilenet_v1_fashion_sparse90.onnx  the sparse model, zeros stored explicitly
  mobilenet_v1_fashion.json           settings, figures per epoch and results

Both ONNX files take "image", float32 [batch, 1, 28, 28], pixels divided by
255 and nothing else, and give "logits", float32 [batch, 10]. Batch
normalization is folded into the convolutions.

Needs torch, onnx, onnxruntime and numpy, and in practice an NVIDIA GPU.

  python3 train_mobilenet_fashion.py --data=DIR --out=DIR
"""

import torch
from torch import nn

import fashion_training
from conv_bn import ConvBn, folded, initialise
from fashion_mnist import NUM_CLASSES

# (output channels at width 1.0, stride) of the depthwise-separable blocks. The
# original network takes 224x224 images; here the stem and the second block
# have stride 1, so a 28x28 image leaves the last block as 4x4.
BLOCKS = (
    (64, 1),
    (128, 1),
    (128, 1),
    (256, 2),
    (256, 1),
    (512, 2),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (512, 1),
    (1024, 2),
    (1024, 1),
)


class SeparableBlock(nn.Module):
    """A 3x3 depthwise convolution followed by a 1x1 (pointwise) one."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.depthwise = ConvBn(inputs, inputs, 3, stride, groups=inputs)
        self.pointwise = ConvBn(inputs, outputs, 1)

    def forward(self, x):
        return self.pointwise(self.depthwise(x))


class MobileNetV1(nn.Module):
    """MobileNetV1 for 28x28 grayscale images."""

    def __init__(self, width=1.0):
        super().__init__()

        def scaled(channels):
            return max(8, int(round(channels * width)))

        channels = scaled(32)
        self.stem = ConvBn(1, channels, 3)
        self.blocks = nn.Sequential()
        for outputs, stride in BLOCKS:
            block = SeparableBlock(channels, scaled(outputs), stride)
            self.blocks.append(block)
            channels = scaled(outputs)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(channels, NUM_CLASSES)
        initialise(self, self.classifier)

    def forward(self, x):
        x = self.pool(self.blocks(self.stem(x)))
        return self.classifier(torch.flatten(x, 1))

    def prunable_weights(self):
        """Returns the 1x1 convolutions' weights: {layer name: parameter}."""
        return {
            f"blocks.{i}.pointwise": block.pointwise.conv.weight
            for i, block in enumerate(self.blocks)
        }

    def folded(self):
        """Returns a float32 copy on the CPU with batch norm folded in."""
        return folded(self)


def main():
    fashion_training.run(
        fashion_training.Classifier(
            title="MobileNetV1",
            file="mobilenet_v1_fashion",
            make=MobileNetV1,
            is_prunable=lambda shape: shape[2:] == (1, 1),
            layers_key="pointwise",
        ),
        description=__doc__.split("\n", 1)[0],
    )


if __name__ == "__main__":
    main()
