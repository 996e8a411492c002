"""MiniLM's training set of glosses, and what is left of the embeddings of an encoder that was pruned on it."""

import numpy as np
import torch
import tqdm

import distillation
import token_batches
import wordnet_glosses

CONFIG = {'hidden_size': 384, 'num_attention_heads': 12, 'hidden_act': 'gelu', 'layer_norm_eps': 1e-12}
EVALUATION_BUDGET = 65536
NEIGHBOURS = 10


class TrainingSet(distillation.TrainingTexts):
    """What `prepare` wrote, on a device: the dense model and the glosses."""

    def __init__(self, path, device, limit=None):
        arrays = np.load(path)
        chosen = slice(limit)
        lengths = arrays['lengths'][chosen].astype(np.int64)
        weights = {name.removeprefix('model/'): torch.from_numpy(arrays[name].astype(np.float32))
                   for name in arrays.files if name.startswith('model/')}
        super().__init__(weights, CONFIG, arrays['tokens'][:lengths.sum()], lengths, device)
        self.classes = torch.from_numpy(arrays['classes'][chosen].astype(np.int64)).to(device)
        self.held_out = arrays['held_out'][chosen]

    def train_index(self):
        return np.flatnonzero(~self.held_out)


@torch.no_grad()
def embed(encoder, data):
    """Returns the embeddings of all glosses, [n, hidden], computed in float32."""
    result = None
    batches = token_batches.length_sorted(data.texts.lengths, EVALUATION_BUDGET)
    for index in tqdm.tqdm(batches, desc='embeddings', mininterval=5):
        tokens, mask = data.texts.batch(index)
        embedded = data.pool(encoder(data.embeddings(tokens), mask)[-1], mask)
        if result is None:
            result = embedded.new_empty(len(data.texts.lengths), embedded.shape[1])
        result[torch.as_tensor(index, device=data.device)] = embedded
    return result


def nearest_classes(embeddings, data):
    """Returns the class of each held-out gloss by the votes of its nearest training glosses.

    The vote of each of the ten neighbours is its cosine.
    """
    held_out = torch.from_numpy(data.held_out).to(data.device)
    known, classes, found = embeddings[~held_out], data.classes[~held_out], []
    for queries in embeddings[held_out].split(1024):
        cosines, places = (queries @ known.T).topk(NEIGHBOURS, dim=1)
        votes = cosines.new_zeros(len(queries), wordnet_glosses.CLASSES)
        found.append(votes.scatter_add_(1, classes[places], cosines).argmax(1))
    return torch.cat(found)


def compare(sparse, data, dense_all=None):
    """Returns the figures of a sparse encoder against the dense one, on the held-out glosses.

    Args:
      dense_all: the dense embeddings, if they are there already.
    """
    dense_all = embed(data.dense(), data) if dense_all is None else dense_all
    sparse_all = embed(sparse, data)
    held_out = torch.from_numpy(data.held_out).to(data.device)
    truth = data.classes[held_out]
    cosines = (dense_all * sparse_all).sum(1)[held_out]
    dense_found, sparse_found = nearest_classes(dense_all, data), nearest_classes(sparse_all, data)

    def percent(right):
        return round(100 * right.double().mean().item(), 2)

    return {
        'held_out_glosses': int(held_out.sum()),
        'mean_cosine': round(cosines.double().mean().item(), 5),
        'fifth_percentile_cosine': round(cosines.double().quantile(0.05).item(), 5),
        'least_cosine': round(cosines.min().item(), 5),
        'knn_neighbours': NEIGHBOURS,
        'knn_accuracy_dense': percent(dense_found == truth),
        'knn_accuracy_sparse': percent(sparse_found == truth),
        'knn_same_class': percent(dense_found == sparse_found),
    }
