"""Train a plant-disease classifier on folders of leaves: the script that everyone has.

python train.py                                   # the leaves beside this file, a small network
python train.py --data ~/plantvillage --model efficientnet_b3 --epochs 10
"""

import argparse
import random
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import models
from torchvision.datasets import ImageFolder
from torchvision.transforms import v2

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
    parser.add_argument("--out", type=Path, default=Path("runs/leaf"))
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def make_loaders(args):
    to_tensor = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
    augment = v2.Compose([v2.RandomResizedCrop(224, scale=(0.25, 1)), v2.RandomHorizontalFlip(), *to_tensor])
    plain = v2.Compose([v2.Resize(256), v2.CenterCrop(224), *to_tensor])
    train = ImageFolder(args.data / "train", augment)
    val = ImageFolder(args.data / "val", plain)
    return (
        DataLoader(train, batch_size=args.batch_size, shuffle=True, num_workers=2),
        DataLoader(val, batch_size=args.batch_size, num_workers=2),
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


def main():
    args = parse_args()
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    args.out.mkdir(parents=True, exist_ok=True)

    train, val = make_loaders(args)
    names = train.dataset.classes
    model = make_model(args.model, len(names)).to(DEVICE, memory_format=torch.channels_last)
    loss_fn = nn.CrossEntropyLoss(weight=class_weights(train.dataset.targets, len(names)))
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, args.lr, total_steps=args.epochs * len(train))

    for epoch in range(args.epochs):
        start, total = time.perf_counter(), 0.0
        for images, labels in train:
            images, labels = images.to(DEVICE), labels.to(DEVICE)
            optimizer.zero_grad()
            loss = loss_fn(model(images), labels)
            loss.backward()
            optimizer.step()
            scheduler.step()
            total += loss.item()
        top1, f1 = evaluate(model, val, len(names))
        state = {
            "epoch": epoch,
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler_state_dict": scheduler.state_dict(),
        }
        torch.save(state, args.out / "last.pt")
        seconds = time.perf_counter() - start
        print(
            f"epoch {epoch}: loss {total / len(train):.3f}, top-1 {top1:.1%}, F1 {f1:.3f}, {seconds:.1f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
