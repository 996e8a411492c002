"""Prunes an encoder while its dense self teaches it: the recipe of distil.py, train_minilm_wordnet.py and
train_patterns.py."""

import copy
import dataclasses
import json
import pathlib
import time

import numpy as np
import torch
import tqdm

import bert_encoder
import pruning
import sparse_bitmask
import token_batches

SCALE_BATCHES = 32


class TrainingTexts:
    """Texts on a device, and the dense model that teaches.

    Args:
      weights: the dense model's tensors, by BERT's names.
      config: of its checkpoint.
      tokens, lengths: as token_batches.TextTokens takes them.
      pooling: as bert_encoder.pool takes it.
    """

    def __init__(self, weights, config, tokens, lengths, device, pooling='mean'):
        self.device, self.config, self.pooling = device, config, pooling
        self.weights = weights
        self.texts = token_batches.TextTokens(tokens, lengths, device)
        self.embeddings = bert_encoder.Embeddings(weights, config, int(token_batches.LENGTHS[-1])).to(device)
        self.longest = len(weights['embeddings.position_embeddings.weight'])

    def dense(self):
        return bert_encoder.Encoder(self.weights, self.config).to(self.device).eval().requires_grad_(False)

    def train_index(self):
        """Which texts are trained on: int64."""
        return np.arange(len(self.texts.lengths))

    def pool(self, states, mask):
        return bert_encoder.pool(states, mask, self.pooling)


@dataclasses.dataclass
class Recipe:
    """How to prune and to distil; the defaults of the command line."""

    sparsity: float = 0.9
    vector: int = 1  # rows of a vector that is pruned as one
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
    dense: list = dataclasses.field(default_factory=list)  # weights that are not pruned, by name


def autocast(device):
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == 'cuda')


def distillation_loss(states, taught, mask, cosine_weight, pool):
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
    embedding, target = (pool(last.float(), mask) for last in (states[-1], taught[-1]))
    turned = 1 - (embedding * target).sum(1).mean()
    return distance / len(states) + cosine_weight * turned, turned


@torch.no_grad()
def input_scales(encoder, data, batches):
    """Returns the root mean square of each input feature of every linear layer: {weight's name: [1, inputs]}."""
    sums, hooks, seen = {}, [], {}
    for i, layer in enumerate(encoder.layers):
        for part in bert_encoder.LINEARS:
            name = f'encoder.layer.{i}.{part}.weight'

            def add(module, inputs, name=name):
                squares = torch.where(seen['mask'][:, :, None], inputs[0], 0).square().sum((0, 1))
                sums[name] = sums.get(name, 0) + squares

            hooks.append(layer.linear(part).register_forward_pre_hook(add))
    count = 0
    for index in batches:
        tokens, seen['mask'] = data.texts.batch(index)
        encoder(data.embeddings(tokens), seen['mask'])
        count += int(seen['mask'].sum())
    for hook in hooks:
        hook.remove()
    return {name: (total / count).sqrt()[None] for name, total in sums.items()}


def weights_to_prune(student, recipe):
    return {name: weight for name, weight in student.linear_weights().items() if name not in recipe.dense}


def make_pruner(student, data, recipe):
    weights = weights_to_prune(student, recipe)
    scales = None
    if recipe.importance == 'inputs':
        train_index = data.train_index()
        batches = token_batches.length_sorted(data.texts.lengths[train_index], recipe.batch_tokens,
                                              np.random.default_rng(recipe.seed))[:SCALE_BATCHES]
        by_name = input_scales(student, data, [train_index[batch] for batch in batches])
        scales = [by_name[name] for name in weights]
    return pruning.MagnitudePruner(weights.values(), recipe.scope, scales)


def epoch_batches(data, train_index, recipe, rng):
    """Returns an epoch's batches: [(first, second)] as TextTokens.batch takes them."""
    lengths = data.texts.lengths
    joined = rng.random(len(train_index)) < recipe.joined
    second = np.where(joined, rng.choice(train_index, len(train_index)), -1)
    together = lengths[train_index] + np.where(joined, lengths[second] - 2, 0)
    if np.any(too_long := together > min(data.longest, token_batches.LENGTHS[-1])):
        second, together = np.where(too_long, -1, second), np.where(too_long, lengths[train_index], together)
    return [(train_index[batch], second[batch])
            for batch in token_batches.length_sorted(together, recipe.batch_tokens, rng)]


class TrainingStep:
    """One step of distillation; on CUDA each shape of batch is captured once in a graph and then replayed.

    A step of one student is some 1400 small kernels, and launching them one by one takes several times as long as
    running them. All students learn from the same batch, for which the teacher computes once.
    """

    def __init__(self, data, recipe, teacher, students, pruners):
        self.data, self.recipe, self.teacher, self.students, self.pruners = data, recipe, teacher, students, pruners
        on_cuda = data.device.type == 'cuda'
        self.sums = torch.zeros(len(students), 3, device=data.device)  # of losses, of 1 - cosine, and steps
        self.rate = torch.tensor(0.0, device=data.device) if on_cuda else 0.0
        self.parameters = [parameter for student in students for parameter in student.parameters()]
        for parameter in self.parameters:
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer = torch.optim.Adam(self.parameters, lr=self.rate, capturable=on_cuda, fused=on_cuda)
        self.optimizer.step()  # of rate 0: makes its state, which must be there before a capture
        self.graphs = {} if on_cuda and recipe.graphs else None
        self.pool = torch.cuda.graph_pool_handle() if on_cuda and recipe.graphs else None

    def state(self):
        """What `restore` takes up again."""
        return {'students': [student.state_dict() for student in self.students], 'sums': self.sums,
                'optimizer': self.optimizer.state_dict(),
                'pruners': [(pruner.sparsity, pruner.masks) for pruner in self.pruners]}

    @torch.no_grad()
    def restore(self, state):
        for student, saved in zip(self.students, state['students']):
            student.load_state_dict(saved)
        for pruner, (sparsity, masks) in zip(self.pruners, state['pruners']):
            pruner.sparsity = sparsity
            for mask, saved in zip(pruner.masks, masks):
                mask.copy_(saved)
        self.optimizer.load_state_dict(state['optimizer'])
        self.optimizer.param_groups[0]['lr'] = self.rate  # which loading replaced
        self.sums.copy_(state['sums'])

    def run(self, tokens, mask, rate):
        if torch.is_tensor(self.rate):
            self.rate.fill_(rate)
        else:
            self.optimizer.param_groups[0]['lr'] = rate
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
            loss, turned = distillation_loss(states, taught, mask, self.recipe.cosine_weight, self.data.pool)
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


class Training:
    """Trains students in place, each to the sparsity that is its goal. It can be stopped between two steps and taken up.

    Args:
      data: TrainingTexts.
      goals: a sparsity for each student and its pruner.
    """

    def __init__(self, data, recipe, teacher, students, pruners, goals):
        self.data, self.recipe, self.students, self.pruners, self.goals = data, recipe, students, pruners, goals
        self.rng = np.random.default_rng(recipe.seed)
        self.train_index = data.train_index()
        self.training_step = TrainingStep(data, recipe, teacher, students, pruners)
        self.steps_per_epoch = len(epoch_batches(data, self.train_index, recipe, np.random.default_rng(recipe.seed)))
        self.schedule = pruning.Schedule(recipe.epochs * self.steps_per_epoch, recipe.rate, recipe.warmup,
                                         recipe.prune_fraction, recipe.prune_every, recipe.seconds)
        self.figures = []
        self.done, self.seconds = 0, 0.0  # batches of this epoch, and how long they took

    def run(self, report=print, keeper=None):
        """Returns for each epoch a list with a dictionary of figures for each student.

        Args:
          keeper: if given, a Keeper: training goes on from what it has, and is kept there.
        """
        if keeper and (state := keeper.load(self.data.device)):
            self._restore(state)
        with tqdm.tqdm(total=100, desc='training', mininterval=5,
                       bar_format='{l_bar}{bar}| {elapsed}<{remaining}{postfix}') as bar:
            while self.schedule.progress() < 1:
                self._epoch(bar, keeper)
                for figure in self.figures[-1]:
                    report(json.dumps(figure))
        for student, pruner, goal in zip(self.students, self.pruners, self.goals):
            if pruner.sparsity != goal:
                pruner.prune_to(goal)
            student.eval().requires_grad_(False)
        return self.figures

    def _epoch(self, bar, keeper):
        started = time.perf_counter() - self.seconds
        if not self.done:
            self.training_step.sums.zero_()
        self.drawn_from = self.rng.bit_generator.state
        for first, second in epoch_batches(self.data, self.train_index, self.recipe, self.rng)[self.done:]:
            tokens, mask = self.data.texts.batch(first, second, self.recipe.batch_tokens)
            self.training_step.run(tokens, mask, self.schedule.rate())
            if (share := self.schedule.advance()) is not None:
                for pruner, goal in zip(self.pruners, self.goals):
                    pruner.prune_to(share * goal)
            self.done += 1
            self.seconds = time.perf_counter() - started
            bar.set_postfix_str(f'step {self.schedule.step}, {100 * self.pruners[0].sparsity:.1f} % zeros', refresh=False)
            bar.update(100 * self.schedule.progress() - bar.n)
            if self.schedule.progress() == 1:
                break
            if keeper:
                keeper.after_step(self._state)
        sums = self.training_step.sums.tolist()
        self.figures.append([
            {'epoch': round(self.schedule.step / self.steps_per_epoch, 2), 'sparsity': round(pruner.sparsity, 4),
             'loss': round(loss / batches, 5), 'train_cosine': round(1 - turned / batches, 5),
             'seconds': round(time.perf_counter() - started, 2)}
            for pruner, (loss, turned, batches) in zip(self.pruners, sums)])
        self.done, self.seconds = 0, 0.0

    def _state(self):
        return {'recipe': dataclasses.asdict(self.recipe), 'rng': self.drawn_from, 'done': self.done,
                'seconds': self.seconds, 'figures': self.figures, 'schedule': self.schedule.state(),
                'step': self.training_step.state()}

    def _restore(self, state):
        self.rng.bit_generator.state = state['rng']
        self.done, self.seconds, self.figures = state['done'], state['seconds'], state['figures']
        self.schedule.restore(state['schedule'])
        self.training_step.restore(state['step'])


def require_same(file, kept, recipe):
    """Raises ValueError if what a file keeps is of another recipe."""
    kept = dataclasses.asdict(Recipe()) | kept
    for name, value in dataclasses.asdict(recipe).items():
        if kept[name] != value:
            raise ValueError(f'{file} is of a training whose {name} is {kept[name]}, not {value}; go on with that, or '
                             'remove the folder that it is in to begin anew')


class Keeper:
    """Keeps a training in a file, so that it goes on from there when it was ended by whatever.

    Args:
      path: the file.
      recipe: which the kept training must have been begun with.
      every: seconds from one time to the next; 0: after each step.
    """

    def __init__(self, path, recipe, every=60.0):
        self.path, self.recipe, self.every = pathlib.Path(path), recipe, every
        self.saved = time.perf_counter()
        self.stop = False  # set it to have the training kept after its next step, and ended with KeyboardInterrupt

    def load(self, device):
        """Returns what was kept last, or None; ValueError if it is another recipe's."""
        if not self.path.is_file():
            return None
        state = torch.load(self.path, map_location=device, weights_only=True)
        require_same(self.path, state['recipe'], self.recipe)
        return state

    def after_step(self, make_state):
        if not self.stop and time.perf_counter() - self.saved < self.every:
            return
        temporary = self.path.with_suffix('.part')
        torch.save(make_state(), temporary)
        temporary.replace(self.path)
        self.saved = time.perf_counter()
        if self.stop:
            raise KeyboardInterrupt


def prune_and_distil(data, recipe, report=print, keeper=None, make_pruner=make_pruner):
    """Trains and returns (sparse encoder, one dictionary of figures an epoch).

    Args:
      make_pruner: (student, data, recipe) -> what prunes it.
    """
    torch.manual_seed(recipe.seed)
    teacher = data.dense()
    student = copy.deepcopy(teacher).train().requires_grad_(True)
    pruner = make_pruner(student, data, recipe)
    training = Training(data, recipe, teacher, [student], [pruner], [recipe.sparsity])
    return student, [figure[0] for figure in training.run(report, keeper)]


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
