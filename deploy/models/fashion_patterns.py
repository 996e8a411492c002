"""Trains copies of a dense image classifier, each to a pattern of zeros of its own, all taught by the dense one.

The copies see the same batches, for which the teacher computes once. Losses, schedule and augmentation are those of
fashion_training.py; the dense twin is the ONNX file here, whose batch normalization, which is folded in there, is put
back first.
"""

import copy
import dataclasses
import time

import onnx
import onnx.numpy_helper
import torch
from torch.nn import functional as F

from conv_bn import ConvBn
from fashion_mnist import CROP_PADDING, augment
from pruning import Schedule

CALIBRATION = 10000  # images
MOMENTUM = 0.9


@dataclasses.dataclass
class Recipe:
    """The defaults of the command line."""

    epochs: int = 12
    seconds: float = 0.0
    rate: float = 0.1
    decay: float = 2e-4
    warmup: float = 0.05
    prune_fraction: float = 0.6
    prune_every: int = 20
    batch_size: int = 512
    label_smoothing: float = 0.1
    erase: float = 0.5
    distill: float = 0.7
    temperature: float = 2.0
    graphs: bool = True


def as_batch(images):
    return (images[:, None].float() / 255).to(memory_format=torch.channels_last)


def open_dense(make, file, images):
    """Returns the network of an ONNX file, with batch normalization again, on the images' device.

    Batch normalization gets the mean and the variance that its inputs have on `images`, and scale and shift so that it
    changes nothing. Weights get a norm of 1 for each output, since what the file has is scaled by what was folded in.
    """
    tensors = {tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
               for tensor in onnx.load(str(file)).graph.initializer}
    model = make()
    layers = {name: module for name, module in model.named_modules() if isinstance(module, ConvBn)}
    with torch.no_grad():
        for name, layer in layers.items():
            weight = tensors[f'{name}.conv.weight']
            norms = weight.flatten(1).norm(dim=1).clamp(min=1e-8)
            layer.conv.weight.copy_(weight / norms[:, None, None, None])
            layer.bn.weight.copy_(norms)
            layer.bn.bias.copy_(tensors[f'{name}.conv.bias'])
            layer.bn.running_var.fill_(1 - layer.bn.eps)
        model.classifier.weight.copy_(tensors['classifier.weight'])
        model.classifier.bias.copy_(tensors['classifier.bias'])
    model = model.to(images.device).to(memory_format=torch.channels_last).eval()
    _calibrate(model, layers.values(), images)
    return model


@torch.no_grad()
def _calibrate(model, layers, images):
    sums, hooks = {}, []
    for layer in layers:
        sums[layer] = torch.zeros(2, layer.bn.num_features, device=images.device, dtype=torch.float64)

        def add(bn, inputs, layer=layer):
            x = inputs[0].double()
            sums[layer] += torch.stack([x.mean((0, 2, 3)), x.square().mean((0, 2, 3))])

        hooks.append(layer.bn.register_forward_pre_hook(add))
    chunks = images.split(1000)
    for chunk in chunks:
        model(as_batch(chunk))
    for hook in hooks:
        hook.remove()
    for layer in layers:
        mean, square = sums[layer] / len(chunks)
        variance, bn = square - mean ** 2, layer.bn
        scale, shift = bn.weight.clone(), bn.bias.clone()
        bn.running_mean.copy_(mean)
        bn.running_var.copy_(variance)
        bn.weight.copy_(scale * (bn.running_var + bn.eps).sqrt())
        bn.bias.copy_(shift + scale * bn.running_mean)


def prunable_weights(model):
    """Returns the weights to prune by their names in the ONNX file."""
    wanted = {id(weight) for weight in model.prunable_weights().values()}
    return {name: weight for name, weight in model.named_parameters() if id(weight) in wanted}


def folded_scales(model):
    """Returns a function that gives the factors by which folding batch normalization in scales the prunable weights."""
    by_weight = {id(layer.conv.weight): layer.bn for layer in model.modules() if isinstance(layer, ConvBn)}
    norms = [by_weight[id(weight)] for weight in prunable_weights(model).values()]
    return lambda: [(bn.weight / (bn.running_var + bn.eps).sqrt())[:, None, None, None] for bn in norms]


def folded_tensors(model):
    """Returns the tensors of the ONNX file in float16 by name, what is pruned as matrices, an output a row."""
    folded = model.folded()
    tensors = {name: (tensor.detach().half() + 0.0).numpy() for name, tensor in folded.named_parameters()}
    for name in prunable_weights(folded):
        tensors[name] = tensors[name].reshape(len(tensors[name]), -1)
    return tensors


class Student:
    """A copy of the dense network, what prunes it, and SGD with Nesterov momentum."""

    def __init__(self, teacher, make_pruner, decay):
        self.model = copy.deepcopy(teacher).train().requires_grad_(True)
        self.pruner = make_pruner(self.model)
        self.parameters = list(self.model.parameters())
        self.decayed = [parameter.dim() > 1 for parameter in self.parameters]
        self.momenta = [torch.zeros_like(parameter) for parameter in self.parameters]
        self.decay = decay

    @torch.no_grad()
    def descend(self, rate):
        """One step along the gradients, which are used up; `rate` is a tensor on a GPU, where steps are replayed."""
        gradients = [parameter.grad for parameter in self.parameters]
        torch._foreach_add_([g for g, decayed in zip(gradients, self.decayed) if decayed],
                            [p for p, decayed in zip(self.parameters, self.decayed) if decayed], alpha=self.decay)
        torch._foreach_mul_(self.momenta, MOMENTUM)
        torch._foreach_add_(self.momenta, gradients)
        torch._foreach_add_(gradients, self.momenta, alpha=MOMENTUM)
        torch._foreach_mul_(gradients, rate)
        torch._foreach_sub_(self.parameters, gradients)
        self.pruner.apply()


class Lesson:
    """One step of all students. On a GPU it is captured once and then replayed: its kernels are many and small."""

    def __init__(self, teacher, students, recipe, device):
        self.teacher, self.students, self.recipe = teacher, students, recipe
        self.batch = self.target = self.graph = None
        self.losses = torch.zeros(len(students), device=device)
        self.rate = torch.zeros((), device=device) if device.type == 'cuda' else 0.0

    def run(self, batch, target, rate):
        on_cuda = isinstance(self.rate, torch.Tensor)
        if not on_cuda or not self.recipe.graphs:
            self.rate = self.rate.fill_(rate) if on_cuda else rate
            self.batch, self.target = batch, target
            self._teach()
            return
        if self.graph is None:
            self._capture(batch, target)
        self.batch.copy_(batch)
        self.target.copy_(target)
        self.rate.fill_(rate)
        self.graph.replay()

    def _capture(self, batch, target):
        self.batch, self.target = batch.clone(), target.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # at rate 0, outside of the graph: libraries set themselves up
                self._teach()
        torch.cuda.current_stream().wait_stream(stream)
        for student in self.students:
            for momentum in student.momenta:
                momentum.zero_()
        self.losses.zero_()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._teach()

    def _teach(self):
        with torch.no_grad(), self._autocast():
            taught = self.teacher(self.batch).float()
        for i, student in enumerate(self.students):
            for parameter in student.parameters:
                parameter.grad = None
            with self._autocast():
                logits = student.model(self.batch).float()
            loss = self._loss(logits, taught)
            loss.backward()
            student.descend(self.rate)
            self.losses[i] += loss.detach()

    def _loss(self, logits, taught):
        recipe = self.recipe
        loss = F.cross_entropy(logits, self.target, label_smoothing=recipe.label_smoothing)
        t = recipe.temperature
        distance = F.kl_div(F.log_softmax(logits / t, 1), F.log_softmax(taught / t, 1), reduction='batchmean',
                            log_target=True)
        return torch.lerp(loss, t * t * distance, recipe.distill)

    def _autocast(self):
        return torch.autocast(self.batch.device.type, torch.bfloat16, enabled=self.batch.device.type == 'cuda')


def train_together(teacher, students, goals, train_set, recipe, report=print):
    """Trains the students in place, each to the sparsity that is its goal; returns the number of epochs."""
    images, labels = train_set
    padded = F.pad(images, [CROP_PADDING] * 4)
    lesson = Lesson(teacher, students, recipe, images.device)
    per_epoch = len(images) // recipe.batch_size
    schedule = Schedule(recipe.epochs * per_epoch, recipe.rate, recipe.warmup, recipe.prune_fraction,
                        recipe.prune_every, recipe.seconds)
    started = time.perf_counter()
    while schedule.progress() < 1:
        order = torch.randperm(len(images), device=images.device)
        for index in order[:per_epoch * recipe.batch_size].split(recipe.batch_size):
            batch = augment(padded, index, recipe.erase).to(memory_format=torch.channels_last)
            lesson.run(batch, labels[index], schedule.rate())
            if (share := schedule.advance()) is not None:
                for student, goal in zip(students, goals):
                    student.pruner.prune_to(share * goal)
            if schedule.progress() == 1:
                break
        losses = [round(loss, 4) for loss in (lesson.losses / schedule.step).tolist()]
        report(f'{schedule.step / per_epoch:.1f} epochs, {time.perf_counter() - started:.1f} s, mean losses {losses}')
    for student, goal in zip(students, goals):
        if student.pruner.sparsity != goal:
            student.pruner.prune_to(goal)
        student.model.eval()
    return schedule.step / per_epoch
