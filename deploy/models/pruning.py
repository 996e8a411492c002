"""Gradual magnitude pruning (Zhu and Gupta, 2017), shared by the training scripts of this folder.

A pruner keeps a 0/1 mask for each weight. A masked weight is zero, hence among the smallest: while the sparsity grows,
it never comes back. Call `prune_to` when the sparsity grows and `apply` after every other optimiser step.
"""

import math
import time

import torch

SCOPES = ('layer', 'global')


class MagnitudePruner:
    """Zeroes the weights of least importance.

    Args:
      weights: the parameters to prune, changed in place.
      scope: 'layer' gives every weight tensor the same sparsity; 'global' ranks all of them together, so that layers
        with small weights lose more.
      scales: if given, a tensor for each weight, broadcastable to it. The importance of an element is its magnitude
        times its scale; with the root mean square of the layer's inputs, that is Wanda's (Sun et al., 2023).
    """

    def __init__(self, weights, scope='layer', scales=None):
        if scope not in SCOPES:
            raise ValueError(f'scope is {scope!r}; it must be one of {", ".join(SCOPES)}')
        self.weights = list(weights)
        self.scope = scope
        self.scales = [1.0] * len(self.weights) if scales is None else list(scales)
        self.masks = [torch.ones_like(w) for w in self.weights]
        self.sparsity = 0.0

    @torch.no_grad()
    def prune_to(self, sparsity):
        """Masks exactly round(sparsity * n) elements of each layer, or of all layers together."""
        self.sparsity = sparsity
        importance = [(w.abs() * s).flatten() for w, s in zip(self.weights, self.scales)]
        if self.scope == 'global':
            kept = _keep_largest(torch.cat(importance), sparsity).split([w.numel() for w in self.weights])
        else:
            kept = [_keep_largest(values, sparsity) for values in importance]
        for mask, keep in zip(self.masks, kept):
            mask.copy_(keep.view(mask.shape))
        self.apply()

    @torch.no_grad()
    def apply(self):
        """Zeroes the masked weights."""
        torch._foreach_mul_(self.weights, self.masks)


def _keep_largest(values, sparsity):
    """Returns a mask of `values`: 0 for the round(sparsity * n) smallest, else 1."""
    order = values.argsort()
    mask = torch.ones_like(values)
    mask[order[:round(sparsity * values.numel())]] = 0
    return mask


def cubic_sparsity(progress, final):
    """Returns the sparsity after `progress` (0..1) of the pruning phase."""
    return final * (1 - (1 - min(progress, 1.0)) ** 3)


def cosine_rate(step, total, peak, warmup):
    """Returns the learning rate: linear warm-up, then a half cosine to 0."""
    if step < warmup:
        return peak * (step + 1) / warmup
    progress = (step - warmup) / max(1, total - warmup)
    return peak * 0.5 * (1 + math.cos(math.pi * progress))


class Schedule:
    """How far a training is, and what rate and sparsity that means; for whoever pays for a GPU by the minute, by time.

    Args:
      total: the number of steps.
      peak: the learning rate after the warm-up.
      warmup: part of the training in which the rate grows.
      prune_fraction: part of the training in which the sparsity grows.
      prune_every: steps from one growth to the next.
      seconds: if not 0, how long it takes from the end of the first step on, whatever `total`; it warms up for as many
        steps as lie between two growths.
    """

    def __init__(self, total, peak, warmup, prune_fraction, prune_every, seconds=0.0):
        self.total, self.peak, self.warmup, self.seconds = total, peak, warmup, seconds
        self.prune_fraction, self.prune_every = prune_fraction, prune_every
        self.warmup_steps = prune_every if seconds else max(1, round(warmup * total))
        self.step, self.started, self.pruned = 0, None, False

    def state(self):
        """What `restore` takes up again."""
        elapsed = None if self.started is None else time.perf_counter() - self.started
        return {'step': self.step, 'elapsed': elapsed, 'pruned': self.pruned}

    def restore(self, state):
        self.step, self.pruned = state['step'], state['pruned']
        self.started = None if state['elapsed'] is None else time.perf_counter() - state['elapsed']

    def progress(self):
        """From 0 to 1."""
        if not self.seconds:
            return min(1.0, self.step / self.total)
        return 0.0 if self.started is None else min(1.0, (time.perf_counter() - self.started) / self.seconds)

    def rate(self):
        if self.step < self.warmup_steps:
            return self.peak * (self.step + 1) / self.warmup_steps
        return cosine_rate(max(0.0, self.progress() - self.warmup), 1.0 - self.warmup, self.peak, 0.0)

    def advance(self):
        """Counts a step. Returns None, or the part of the final sparsity to prune to now."""
        self.step += 1
        if self.seconds and self.step % self.prune_every in (0, 1) and torch.cuda.is_available():
            torch.cuda.synchronize()  # what is queued is not done
        if self.started is None:
            self.started = time.perf_counter()
        pruning = self.progress() / self.prune_fraction
        if self.pruned or pruning < 1 and self.step % self.prune_every:
            return None
        self.pruned = pruning >= 1
        return cubic_sparsity(pruning, 1.0)
