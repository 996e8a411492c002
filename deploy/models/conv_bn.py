"""A convolution with batch normalization, which is folded in for export."""

import copy

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


class ConvBn(nn.Module):
    """A convolution without bias, batch normalization and an activation."""

    def __init__(
        self, inputs, outputs, kernel, stride=1, groups=1, activation=nn.ReLU6
    ):
        super().__init__()
        self.conv = nn.Conv2d(
            inputs,
            outputs,
            kernel,
            stride=stride,
            padding=kernel // 2,
            groups=groups,
            bias=False,
        )
        self.bn = nn.BatchNorm2d(outputs)
        self.act = activation()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))

    def fold_batch_norm(self):
        """Folds the (evaluation-mode) batch normalization into the conv."""
        self.conv = fuse_conv_bn_eval(self.conv, self.bn)
        self.bn = nn.Identity()
        # A negative scale turns 0.0 into -0.0; adding 0.0 turns it back.
        self.conv.weight.data.add_(0.0)


def initialise(model, classifier):
    """Gives the convolutions and the classifier their first weights."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(
                module.weight, mode="fan_out", nonlinearity="relu"
            )
    nn.init.normal_(classifier.weight, std=0.01)
    nn.init.zeros_(classifier.bias)


def folded(model):
    """Returns a float32 copy on the CPU with batch norm folded in."""
    model = copy.deepcopy(model).to("cpu", torch.float32)
    model = model.to(memory_format=torch.contiguous_format).eval()
    for module in model.modules():
        if isinstance(module, ConvBn):
            module.fold_batch_norm()
    return model
