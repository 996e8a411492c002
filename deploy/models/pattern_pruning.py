"""Pruning to a pattern, little by little while a network trains; patterns.py says what the patterns are."""

import torch

from patterns import cells_of


class PatternPruner:
    """Zeroes the cells of least mean magnitude; the interface is that of pruning.MagnitudePruner.

    Args:
      pattern: what to prune to.
      weights: the parameters to prune, changed in place.
      groups: for each weight the groups of its rows, or None.
      scales: if given, a function that returns a factor for each weight, broadcastable to it: magnitudes are those of
        the products.
    """

    def __init__(self, pattern, weights, groups=None, scales=None):
        self.pattern, self.weights, self.scales = pattern, list(weights), scales
        self.cells = []
        for weight, rows in zip(self.weights, groups or [None] * len(self.weights)):
            cells = torch.from_numpy(cells_of(pattern, tuple(weight.shape), rows)).to(weight.device)
            self.cells.append((cells, torch.bincount(cells).float()))
        self.masks = [torch.ones_like(weight) for weight in self.weights]
        self.sparsity = 0.0

    @torch.no_grad()
    def prune_to(self, sparsity):
        """Masks round(sparsity * n) of the n cells of each weight; by n-m only what the limit lets go."""
        self.sparsity = sparsity
        factors = self.scales() if self.scales else [1.0] * len(self.weights)
        for weight, factor, mask, (cells, sizes) in zip(self.weights, factors, self.masks, self.cells):
            magnitudes = (weight * factor).abs()
            if self.pattern.m:
                magnitudes = torch.where(self._largest_of_groups(magnitudes), torch.inf, magnitudes)
            sums = torch.zeros_like(sizes).index_add_(0, cells, magnitudes.reshape(-1))
            # What is wholly zero goes first, which a mean of 0 is already.
            order = (sums / sizes).argsort(stable=True)
            kept = torch.ones_like(sizes)
            kept[order[:int(sparsity * len(sizes) + 0.5)]] = 0
            mask.copy_(kept[cells].view(mask.shape))
        self.apply()

    @torch.no_grad()
    def apply(self):
        """Zeroes the masked weights."""
        torch._foreach_mul_(self.weights, self.masks)

    def _largest_of_groups(self, magnitudes):
        """True for the n largest of any m neighbouring input channels at one tap."""
        n, m = self.pattern.n, self.pattern.m
        outputs, channels = magnitudes.shape[:2]
        if channels % m:
            raise ValueError(f'{channels} input channels are not a multiple of {m}')
        grouped = magnitudes.reshape(outputs, channels // m, m, -1)
        largest = torch.zeros_like(grouped, dtype=torch.bool).scatter_(2, grouped.topk(n, dim=2).indices, True)
        return largest.view(magnitudes.shape)
