"""Batches of texts of like length, made on the device from one row of tokens."""

import numpy as np
import torch

# The lengths that batches are padded to: multiples of 8 for the tensor cores, and few, since each gets a CUDA graph.
LENGTHS = np.array([8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 192, 256, 384, 512])


def padded(lengths):
    """Returns the lengths that batches of texts of these lengths have."""
    return LENGTHS[np.searchsorted(LENGTHS, lengths)]


class TextTokens:
    """The tokens of all texts on a device, and which of them a batch takes.

    Args:
      tokens: [total], all texts one after the other, each from [CLS] to [SEP].
      lengths: [n], the texts' tokens.
    """

    def __init__(self, tokens, lengths, device):
        self.device = device
        self.lengths = np.asarray(lengths, np.int64)
        self.starts = np.cumsum(self.lengths) - self.lengths
        self.tokens = torch.as_tensor(np.asarray(tokens, np.int32)).to(device)

    def batch(self, first, second=None, budget=0):
        """Returns (tokens int32, mask bool), both [batch, length].

        Args:
          first: int64 [batch], the texts to take.
          second: int64 [batch] or None: texts to append, as one text with the first; -1 for none.
          budget: if given, texts are taken again until the batch has as many rows as this many tokens give, so that
            all batches of a length have one shape.
        """
        if budget:
            longest = self.lengths[first] + (0 if second is None else np.where(second < 0, 0, self.lengths[second] - 2))
            rows = max(1, budget // int(padded(longest.max())))
            first, second = np.resize(first, rows), second if second is None else np.resize(second, rows)
        head = self.lengths[first]
        tail_start, tail = np.zeros_like(head), np.zeros_like(head)
        if second is not None:
            joined = second >= 0
            head = head - joined  # without its [SEP]
            tail = np.where(joined, self.lengths[second] - 1, 0)  # without its [CLS]
            tail_start = np.where(joined, self.starts[second] + 1, 0)
        length = int(padded((head + tail).max()))
        columns = torch.as_tensor(np.stack([self.starts[first], head, tail_start - head, head + tail]))
        start, head, shift, total = columns.to(self.device, non_blocking=True)[:, :, None]
        place = torch.arange(length, device=self.device)[None]
        mask = place < total
        index = place + torch.where(place < head, start, shift)
        return torch.where(mask, self.tokens[torch.where(mask, index, 0)], 0), mask


def length_sorted(lengths, budget, rng=None, window=64):
    """Returns index arrays that cover range(len(lengths)): texts of like length, each batch of about `budget` tokens.

    Args:
      rng: a NumPy generator: shuffles first, sorts only within windows of about `window` batches, and shuffles the
        batches. None: sorts all.
    """
    count = len(lengths)
    order = np.arange(count) if rng is None else rng.permutation(count)
    per_window = count if rng is None else max(1, int(window * budget / lengths.mean()))
    batches = []
    for start in range(0, count, per_window):
        part = order[start:start + per_window]
        part = part[np.argsort(lengths[part], kind='stable')]
        while len(part):
            # Of ascending lengths, the last one taken is the length of the whole batch.
            take = max(1, int(np.searchsorted(padded(lengths[part]) * np.arange(1, len(part) + 1), budget, side='right')))
            batches.append(part[:take])
            part = part[take:]
    if rng is not None:
        rng.shuffle(batches)
    return batches
