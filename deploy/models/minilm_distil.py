"""Prunes a MiniLM encoder while its dense self teaches it, and measures what is left of the embeddings."""

import copy
import dataclasses
import json
import time

import numpy as np
import torch
import tqdm

import gloss_batches
import minilm_encoder
import pruning
import sparse_bitmask
import wordnet_glosses

EVALUATION_BUDGET = 65536
SCALE_BATCHES = 32
NEIGHBOURS = 10


class TrainingSet:
    """What `prepare` wrote, on a device: the dense model and the glosses."""

    def __init__(self, path, device, limit=None):
        arrays = np.load(path)
        chosen = slice(limit)
        lengths = arrays['lengths'][chosen].astype(np.int64)
        self.device = device
        self.weights = {name.removeprefix('model/'): torch.from_numpy(arrays[name].astype(np.float32))
                        for name in arrays.files if name.startswith('model/')}
        self.glosses = gloss_batches.GlossTokens(arrays['tokens'][:lengths.sum()], lengths, device)
        self.classes = torch.from_numpy(arrays['classes'][chosen].astype(np.int64)).to(device)
        self.held_out = arrays['held_out'][chosen]
        self.embeddings = minilm_encoder.Embeddings(self.weights).to(device)

    def dense(self):
        return minilm_encoder.Encoder(self.weights).to(self.device).eval().requires_grad_(False)


@dataclasses.dataclass
class Recipe:
    """How to prune and to distil; the defaults of the command line."""

    sparsity: float = 0.9
    scope: str = 'layer'
    importance: str = 'magnitude'
    epochs: int = 45
    seconds: float = 0.0
    rate: float = 1.5e-3
    warmup: float = 0.02
    prune_fraction: float = 0.6
    prune_every: int = 20
    batch_tokens: int = 16384
    joined: float = 0.2
    cosine_weight: float = 5.0
    seed: int = 1
    graphs: bool = True


def autocast(device):
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == 'cuda')


def distillation_loss(states, taught, mask, cosine_weight):
    """Returns (loss, 1 - mean cosine): how far a student's states and its sentence embeddings are from its teacher's.

    The first part is the mean over all states of their squared difference at unmasked positions, over the teacher's
    squared deviation from its mean.
    """
    present = mask[:, :, None]
    count = mask.sum() * states[0].shape[-1]
    distance = 0.0
    for state, target in zip(states, taught):
        target = target.float()
        mean = torch.where(present, target, 0).sum() / count
        spread = torch.where(present, target - mean, 0).square().sum()
        distance = distance + torch.where(present, state.float() - target, 0).square().sum() / spread
    embedding, target = (minilm_encoder.pool(last.float(), mask) for last in (states[-1], taught[-1]))
    turned = 1 - (embedding * target).sum(1).mean()
    return distance / len(states) + cosine_weight * turned, turned


@torch.no_grad()
def input_scales(encoder, data, batches):
    """Returns the root mean square of each input feature of every linear layer: {weight's name: [1, inputs]}."""
    sums, hooks, seen = {}, [], {}
    for i, layer in enumerate(encoder.layers):
        for part in minilm_encoder.LINEARS:
            name = f'encoder.layer.{i}.{part}.weight'

            def add(module, inputs, name=name):
                squares = torch.where(seen['mask'][:, :, None], inputs[0], 0).square().sum((0, 1))
                sums[name] = sums.get(name, 0) + squares

            hooks.append(layer.linear(part).register_forward_pre_hook(add))
    count = 0
    for index in batches:
        tokens, seen['mask'] = data.glosses.batch(index)
        encoder(data.embeddings(tokens), seen['mask'])
        count += int(seen['mask'].sum())
    for hook in hooks:
        hook.remove()
    return {name: (total / count).sqrt()[None] for name, total in sums.items()}


def make_pruner(student, data, train_index, recipe):
    weights = student.linear_weights()
    scales = None
    if recipe.importance == 'inputs':
        batches = gloss_batches.length_sorted(data.glosses.lengths[train_index], recipe.batch_tokens,
                                              np.random.default_rng(recipe.seed))[:SCALE_BATCHES]
        by_name = input_scales(student, data, [train_index[batch] for batch in batches])
        scales = [by_name[name] for name in weights]
    return pruning.MagnitudePruner(weights.values(), recipe.scope, scales)


def epoch_batches(data, train_index, recipe, rng):
    """Returns an epoch's batches: [(first, second)] as GlossTokens.batch takes them."""
    lengths = data.glosses.lengths
    joined = rng.random(len(train_index)) < recipe.joined
    second = np.where(joined, rng.choice(train_index, len(train_index)), -1)
    together = lengths[train_index] + np.where(joined, lengths[second] - 2, 0)
    return [(train_index[batch], second[batch])
            for batch in gloss_batches.length_sorted(together, recipe.batch_tokens, rng)]


class TrainingStep:
    """One step of distillation; on CUDA each shape of batch is captured once in a graph and then replayed.

    A step of one student is some 1400 small kernels, and launching them one by one takes several times as long as
    running them. All students learn from the same batch, for which the teacher computes once.
    """

    def __init__(self, data, recipe, teacher, students, pruners):
        self.data, self.recipe, self.teacher, self.students, self.pruners = data, recipe, teacher, students, pruners
        on_cuda = data.device.type == 'cuda'
        self.sums = torch.zeros(len(students), 3, device=data.device)  # of losses, of 1 - cosine, and steps
        self.rate = torch.tensor(0.0, device=data.device)
        self.parameters = [parameter for student in students for parameter in student.parameters()]
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer = torch.optim.Adam(self.parameters, lr=self.rate, capturable=on_cuda, fused=on_cuda)
        self.optimizer.step()  # of rate 0: makes its state, which must be there before a capture
        self.graphs = {} if on_cuda and recipe.graphs else None
        self.pool = torch.cuda.graph_pool_handle() if on_cuda and recipe.graphs else None

    def run(self, tokens, mask, rate):
        self.rate.fill_(rate)
        if self.graphs is None:
            self._train(tokens, mask)
            return
        if tokens.shape not in self.graphs:
            self.graphs[tokens.shape] = self._capture(tokens, mask)
        graph, graph_tokens, graph_mask = self.graphs[tokens.shape]
        graph_tokens.copy_(tokens)
        graph_mask.copy_(mask)
        graph.replay()

    def _train(self, tokens, mask):
        torch._foreach_zero_([parameter.grad for parameter in self.parameters])
        figures = self._backward(tokens, mask)
        self.optimizer.step()
        for pruner in self.pruners:
            pruner.apply()
        self.sums += figures

    def _backward(self, tokens, mask):
        """Adds to all gradients; returns what `sums` adds up."""
        embedded, figures = self.data.embeddings(tokens), []
        with autocast(self.data.device), torch.no_grad():
            taught = self.teacher(embedded, mask)
        for student in self.students:
            with autocast(self.data.device):
                states = student(embedded, mask)
            loss, turned = distillation_loss(states, taught, mask, self.recipe.cosine_weight)
            loss.backward()
            figures.append(torch.stack([loss.detach(), turned.detach(), torch.ones_like(turned)]))
        return torch.stack(figures)

    def _capture(self, tokens, mask):
        """Returns (graph, its tokens, its mask)."""
        tokens, mask = tokens.clone(), mask.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # a first run outside the graph: libraries set themselves up
            self._backward(tokens, mask)
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self.pool):
            self._train(tokens, mask)
        return graph, tokens, mask


def prune_and_distil(data, recipe, report=print):
    """Trains and returns (sparse encoder, one dictionary of figures an epoch)."""
    torch.manual_seed(recipe.seed)
    teacher = data.dense()
    student = copy.deepcopy(teacher).train().requires_grad_(True)
    pruner = make_pruner(student, data, np.flatnonzero(~data.held_out), recipe)
    figures = distil_together(data, recipe, teacher, [student], [pruner], [recipe.sparsity], report)
    return student, [figure[0] for figure in figures]


def distil_together(data, recipe, teacher, students, pruners, goals, report=print):
    """Trains students in place, each to the sparsity that is its goal.

    Returns for each epoch a list with a dictionary of figures for each student.
    """
    rng = np.random.default_rng(recipe.seed)
    train_index = np.flatnonzero(~data.held_out)
    training_step = TrainingStep(data, recipe, teacher, students, pruners)
    steps_per_epoch = len(epoch_batches(data, train_index, recipe, np.random.default_rng(recipe.seed)))
    schedule = pruning.Schedule(recipe.epochs * steps_per_epoch, recipe.rate, recipe.warmup, recipe.prune_fraction,
                                recipe.prune_every, recipe.seconds)
    figures = []
    bar = tqdm.tqdm(desc='epochs', mininterval=5)
    while schedule.progress() < 1:
        started = time.perf_counter()
        training_step.sums.zero_()
        for first, second in epoch_batches(data, train_index, recipe, rng):
            tokens, mask = data.glosses.batch(first, second, recipe.batch_tokens)
            training_step.run(tokens, mask, schedule.rate())
            if (share := schedule.advance()) is not None:
                for pruner, goal in zip(pruners, goals):
                    pruner.prune_to(share * goal)
            if schedule.progress() == 1:
                break
        sums, seconds = training_step.sums.tolist(), round(time.perf_counter() - started, 2)
        figures.append([{'epoch': round(schedule.step / steps_per_epoch, 2), 'sparsity': round(pruner.sparsity, 4),
                         'loss': round(loss / batches, 5), 'train_cosine': round(1 - turned / batches, 5),
                         'seconds': seconds} for pruner, (loss, turned, batches) in zip(pruners, sums)])
        for figure in figures[-1]:
            report(json.dumps(figure))
        bar.update()
    for student, pruner, goal in zip(students, pruners, goals):
        if pruner.sparsity != goal:
            pruner.prune_to(goal)
        student.eval().requires_grad_(False)
    return figures


@torch.no_grad()
def embed(encoder, data):
    """Returns the embeddings of all glosses, [n, hidden], computed in float32."""
    result = None
    batches = gloss_batches.length_sorted(data.glosses.lengths, EVALUATION_BUDGET)
    for index in tqdm.tqdm(batches, desc='embeddings', mininterval=5):
        tokens, mask = data.glosses.batch(index)
        embedded = minilm_encoder.pool(encoder(data.embeddings(tokens), mask)[-1], mask)
        if result is None:
            result = embedded.new_empty(len(data.glosses.lengths), embedded.shape[1])
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


def as_half(encoder):
    """Rounds the encoder to float16, which is how it is stored; returns its tensors by name, as NumPy arrays."""
    tensors = {}
    with torch.no_grad():
        for name, parameter in encoder.checkpoint_names():
            half = parameter.half() + 0.0  # -0.0 becomes 0.0
            parameter.copy_(half)
            tensors[name] = half.cpu().numpy()
    return tensors


def layer_sparsity(tensors):
    """Returns {weight's name: share of zeros} and the share over all of them."""
    weights = {name: tensor for name, tensor in tensors.items() if tensor.ndim == 2}
    zeros = {name: int((weight == 0).sum()) for name, weight in weights.items()}
    return ({name: round(zeros[name] / weight.size, 4) for name, weight in weights.items()},
            sum(zeros.values()) / sum(weight.size for weight in weights.values()))


def save(path, tensors):
    """Writes an encoder's tensors, its matrices as sparse-bitmask."""
    sparse_bitmask.save(path, tensors, {name for name, tensor in tensors.items() if tensor.ndim == 2})
