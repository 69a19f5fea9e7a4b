"""Train a plant-disease classifier on folders of leaves, with Stoker: fed by its loader, and never lost.

python train_stoker.py                            # the leaves beside this file, a small network
python train_stoker.py                            # again: goes on where it was stopped, killed or cut off
"""

import argparse
import hashlib
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import stoker
import torch
from torch import nn
from torchvision import models

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--data", type=Path, default=Path(__file__).parent / "leaves", help="has train/ and val/"
    )
    parser.add_argument("--model", default="small", help="small, or any name in torchvision.models")
    parser.add_argument("--epochs", type=int, default=24)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--out", "--run-dir", type=Path, default=Path("runs/leaf"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=4, help="save every so many steps")
    parser.add_argument("--budget", help="how long the session may run: 40m")
    return parser.parse_args()


def make_loaders(args):
    normalize = stoker.Normalize(MEAN, STD)
    augment = [stoker.RandomResizedCrop(224, scale=(0.25, 1)), stoker.RandomHorizontalFlip(), normalize]
    plain = [stoker.Resize(256), stoker.CenterCrop(224), normalize]
    options = {"batch_size": args.batch_size, "dtype": "float32", "seed": args.seed}
    return (
        stoker.ImageLoader(args.data / "train", transform=augment, shuffle=True, **options),
        stoker.ImageLoader(args.data / "val", transform=plain, **options),
    )


def make_model(name, classes):
    if name != "small":
        return models.get_model(name, num_classes=classes)
    blocks, channels = [], [3, 16, 32, 64, 128, 256]
    for before, after in pairwise(channels):
        blocks += [
            nn.Conv2d(before, after, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
        ]
    return nn.Sequential(*blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], classes))


def class_weights(labels, classes):
    counts = Counter(labels)
    return torch.tensor([len(labels) / (classes * counts[c]) for c in range(classes)], device=DEVICE)


@torch.no_grad()
def evaluate(model, loader, classes):
    """Top-1 accuracy and macro F1 over the loader."""
    model.eval()
    confusion = torch.zeros(classes, classes)
    for images, labels in loader:
        predicted = model(images.to(DEVICE)).argmax(1).cpu()
        confusion += torch.bincount(labels * classes + predicted, minlength=classes**2).view(classes, classes)
    model.train()
    hits = confusion.diagonal()
    f1 = 2 * hits / (confusion.sum(0) + confusion.sum(1)).clamp(min=1)
    return (hits.sum() / confusion.sum()).item(), f1.mean().item()


def weights_hash(model):
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.cpu().numpy().tobytes())
    return digest.hexdigest()[:32]


def main():
    args = parse_args()
    stoker.seed_everything(args.seed)
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(True, warn_only=True)

    train, val = make_loaders(args)
    names = train.classes
    model = make_model(args.model, len(names)).to(DEVICE, memory_format=torch.channels_last)
    loss_fn = nn.CrossEntropyLoss(weight=class_weights(train.labels, len(names)))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(train))

    parts = {"model": model, "optimizer": optimizer, "scheduler": scheduler, "loader": train}
    with stoker.Session(args.out, **parts, every=args.every, budget=args.budget) as run:
        for epoch in run.epochs(args.epochs):
            start = time.perf_counter()
            for images, labels in run.batches(train):
                images, labels = images.to(DEVICE), labels.to(DEVICE)
                optimizer.zero_grad()
                loss = loss_fn(model(images), labels)
                loss.backward()
                optimizer.step()
                scheduler.step()
                run.log(loss=loss.item())
            top1, f1 = evaluate(model, val, len(names))
            run.epoch_end(top1=top1, f1=f1, best="max")
            seconds = time.perf_counter() - start
            print(f"epoch {epoch}: top-1 {top1:.1%}, F1 {f1:.3f}, {seconds:.1f} s", flush=True)
    print(f"weights {weights_hash(model)}")


if __name__ == "__main__":
    main()
