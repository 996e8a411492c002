"""Swin, whose attention is in windows. See make_architectures.py."""

import numpy

from make_architectures import architecture


def shifted_mask(side, window, shift):
    """[windows, tokens, tokens]: -100 where two tokens come from different sides of the edge that the shift moved."""
    band = numpy.repeat(numpy.arange(3), (side - window, window - shift, shift))
    area = (band[:, None] * 3 + band).reshape(side // window, window, side // window, window)
    area = area.transpose(0, 2, 1, 3).reshape(-1, window * window)
    return numpy.where(area[:, None] == area[:, :, None], 0, -100).astype(numpy.float32)


@architecture({'widths': (32, 64), 'depths': (2, 2), 'heads': (2, 4), 'window': 4, 'image': 32},
              {'widths': (96, 192, 384, 768), 'depths': (2, 2, 6, 2), 'heads': (3, 6, 12, 24), 'window': 7,
               'image': 224})
def swin(g, s):
    """Attention in windows, with a bias by relative position; in every second layer the windows are shifted, and tokens
    that were no neighbours before see nothing of each other."""
    side = s.image // 4
    x = g.conv(g.input(3, s.image, s.image), 3, s.widths[0], 4, strides=[4, 4])
    x = g.layer_norm(g.planes_to_tokens(x, s.widths[0]), s.widths[0])
    w = s.window
    for stage, (width, depth, heads) in enumerate(zip(s.widths, s.depths, s.heads)):
        if stage > 0:
            before = s.widths[stage - 1]
            x = g.reshape(x, -1, side // 2, 2, side // 2, 2, before)
            x = g.reshape(g.transpose(x, 0, 1, 3, 4, 2, 5), -1, side * side // 4, 4 * before)
            side //= 2
            x = g.linear(g.layer_norm(x, 4 * before), 4 * before, width, bias=False)
        for layer in range(depth):
            shift = w // 2 if layer % 2 == 1 and side > w else 0
            y = g.layer_norm(x, width)
            if shift:
                y = g.roll(g.roll(g.reshape(y, -1, side, side, width), -shift, 1), -shift, 2)
            y = g.reshape(y, -1, side // w, w, side // w, w, width)
            y = g.reshape(g.transpose(y, 0, 1, 3, 2, 4, 5), -1, w * w, width)
            bias = g.initializer(g.normal(1, heads, w * w, w * w))
            y = g.attend(y, width, heads, bias, mask=shifted_mask(side, w, shift) if shift else None)
            y = g.reshape(y, -1, side // w, side // w, w, w, width)
            y = g.transpose(y, 0, 1, 3, 2, 4, 5)
            if shift:
                y = g.roll(g.roll(g.reshape(y, -1, side, side, width), shift, 1), shift, 2)
            x = g.add(x, g.reshape(y, -1, side * side, width))
            y = g.gelu(g.linear(g.layer_norm(x, width), width, 4 * width))
            x = g.add(x, g.linear(y, 4 * width, width))
    x = g.mean(g.layer_norm(x, s.widths[-1]), keepdims=False, axes=[1])
    g.output(g.gemm(x, s.widths[-1], 10))
