# SPDX-License-Identifier: BSD-3-Clause
"""weir.torch.Batches: a torch.utils.data.IterableDataset of mini-batches, divided among ranks and workers."""
from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import NO_LABEL, Dataset


class Batches(IterableDataset):
    """Use with DataLoader(batch_size=None): items are (rows, lengths, labels), tensors that were copied out of the batch. The
    label of a sample without one is -1, as in data[i]."""

    def __init__(self, data: Dataset, *, batch: int, seed: int = 0, order: str = "shuffled-chunk", rank: int = 0,
                 ranks: int = 1) -> None:
        super().__init__()
        self.data, self.batch, self.seed, self.order, self.rank, self.ranks = data, batch, seed, order, rank, ranks
        self.number = 0

    def set_epoch(self, number: int) -> None:
        """As of DistributedSampler: the epoch that the next iteration reads."""
        self.number = number

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
        worker = get_worker_info()
        workers, index = (worker.num_workers, worker.id) if worker else (1, 0)
        for batch in self.data.epoch(seed=self.seed, epoch=self.number, batch=self.batch, order=self.order,
                                     rank=self.rank * workers + index, ranks=self.ranks * workers):
            labels = torch.from_numpy(batch.labels.astype("int64"))
            labels[labels == NO_LABEL] = -1
            yield torch.from_numpy(batch.rows.copy()), torch.from_numpy(batch.lengths.astype("int64")), labels
