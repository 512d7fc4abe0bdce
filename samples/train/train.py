#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Train a small network on scikit-learn's handwritten digits, read through weir, and print the accuracy of each order.

The training images are written class by class into a tar file with labels, as an archive made folder by folder is; the test images stay
out of it. The network has one hidden layer and is plain numpy. Usage: train.py [--seeds N] [--epochs N] [--batch N]
"""
from __future__ import annotations

import argparse
import io
import tarfile
import tempfile

import numpy

import weir


def split() -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray, numpy.ndarray]:
    """Training images and labels sorted by label, test images and labels; pixels as bytes 0 to 16."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    order = numpy.random.default_rng(0).permutation(len(digits.target))
    test, train = order[:360], order[360:]
    train = train[numpy.argsort(digits.target[train], kind="stable")]
    pixels = digits.data.astype(numpy.uint8)
    return pixels[train], digits.target[train], pixels[test], digits.target[test]


def write_shard(path: str, pixels: numpy.ndarray, labels: numpy.ndarray) -> None:
    with tarfile.open(path, "w") as shard:
        for number, (image, label) in enumerate(zip(pixels, labels)):
            for kind, content in ("bin", image.tobytes()), ("cls", str(label).encode()):
                member = tarfile.TarInfo(f"{number:05}.{kind}")
                member.size = len(content)
                shard.addfile(member, io.BytesIO(content))


class Network:
    """64 inputs, 32 rectified units, 10 classes; stochastic gradient descent."""

    def __init__(self, seed: int) -> None:
        random = numpy.random.default_rng(seed)
        self.first = random.normal(0, 0.18, (64, 32)).astype(numpy.float32)
        self.second = random.normal(0, 0.25, (32, 10)).astype(numpy.float32)
        self.first_bias, self.second_bias = numpy.zeros(32, numpy.float32), numpy.zeros(10, numpy.float32)

    def forward(self, pixels: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray, numpy.ndarray]:
        inputs = pixels.astype(numpy.float32) / 16
        hidden = numpy.maximum(inputs @ self.first + self.first_bias, 0)
        return inputs, hidden, hidden @ self.second + self.second_bias

    def step(self, pixels: numpy.ndarray, labels: numpy.ndarray, rate: float) -> None:
        inputs, hidden, scores = self.forward(pixels)
        share = numpy.exp(scores - scores.max(axis=1, keepdims=True))
        share /= share.sum(axis=1, keepdims=True)
        share[numpy.arange(len(labels)), labels] -= 1
        share /= len(labels)
        back = (share @ self.second.T) * (hidden > 0)
        self.second -= rate * hidden.T @ share
        self.second_bias -= rate * share.sum(axis=0)
        self.first -= rate * inputs.T @ back
        self.first_bias -= rate * back.sum(axis=0)

    def accuracy(self, pixels: numpy.ndarray, labels: numpy.ndarray) -> float:
        return float((self.forward(pixels)[2].argmax(axis=1) == labels).mean())


def train(data: weir.Dataset, order: str, buffer: int, seed: int, options: argparse.Namespace) -> Network:
    network = Network(seed)
    for epoch in range(options.epochs):
        for batch in data.epoch(seed=seed, epoch=epoch, batch=options.batch, order=order, buffer_chunks=buffer):
            network.step(batch.rows[:, :64], batch.labels.astype(numpy.int64), options.rate)
    return network


def compare(uri: str, place: str, test_pixels: numpy.ndarray, test_labels: numpy.ndarray, options: argparse.Namespace) -> None:
    """Accuracy of each order; chunks are as short as they can be, since the dataset is small."""
    with weir.Dataset(uri, chunk_bytes=64 << 10, cache_bytes=8 << 20) as data:
        where = "in place, sorted by class" if place == "digits.tar" else "uploaded: in the order of a hash"
        print(f"{len(data)} training images {where}, in {data.info.chunks} chunks; {len(test_labels)} test images, "
              f"{options.epochs} epochs, batches of {options.batch}, {options.seeds} seeds")
        print(f"{'order':16} {'buffer':>6}  accuracy: mean, deviation")
        for order, buffer in (("full", 1), ("shuffled-chunk", 32), ("chunk", 32), ("shuffled-chunk", 8), ("chunk", 8),
                              ("shuffled-chunk", 1), ("chunk", 1)):
            results = [train(data, order, buffer, seed, options).accuracy(test_pixels, test_labels) for seed in range(options.seeds)]
            shown = "-" if order == "full" else str(buffer)
            print(f"{order:16} {shown:>6}  {numpy.mean(results):.4f} {numpy.std(results, ddof=1) if len(results) > 1 else 0:.4f}",
                  flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.1)
    options = parser.parse_args()
    pixels, labels, test_pixels, test_labels = split()
    with tempfile.TemporaryDirectory() as folder:
        write_shard(f"{folder}/digits.tar", pixels, labels)
        weir.index(f"file:{folder}/digits.tar")
        with open(f"{folder}/uploaded", "wb") as storage:
            storage.truncate(4 << 20)
        weir.upload(f"file:{folder}/uploaded", f"{folder}/digits.tar")
        for place in "digits.tar", "uploaded":
            compare(f"file:{folder}/{place}", place, test_pixels, test_labels, options)


if __name__ == "__main__":
    main()
