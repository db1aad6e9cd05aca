"""Two processes that share a batch get the loss and the gradients of one."""

import numpy as np
import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from zoo.backbones import L2Net
from zoo.training.describe import Described
from zoo.training.together import add_gradients, part

N = 9  # patches: not a multiple of two


def loss_and_gradients():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    network = L2Net(learned_bn=True).train()  # not in its first and last layer
    patches = torch.rand(N, 1, 32, 32) * 255
    describe = Described(network, torch.float32)
    first, last, vectors = describe.maps(patches)
    distances = torch.cdist(vectors, describe(patches).roll(1, 0))
    loss = distances.amin(1).sum() + 0.01 * last.square().mean() + 0.01 * first.mean()
    loss = loss + (distances * torch.arange(N)).mean()
    loss.backward()
    add_gradients(network)
    still = describe.still(patches)
    state = {f"state {k}": v for k, v in network.state_dict().items() if "running" in k}
    gradients = {k: p.grad for k, p in network.named_parameters()}
    return {"loss": loss.detach(), "still": still, **state, **gradients}


def one_of_two(rank, folder):
    store = dist.FileStore(f"{folder}/store", 2)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
    torch.save(loss_and_gradients(), f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_two_processes_give_the_loss_and_the_gradients_of_one(tmp_path):
    mp.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    alone = loss_and_gradients()
    for rank in range(2):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        assert found.keys() == alone.keys()
        for name, value in alone.items():
            # float32, summed in another order, through seven batch normalisations of 9 patches
            close = 2e-4 * float(value.abs().max())
            assert float((found[name] - value).abs().max()) <= close, name


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 8, 9])
def test_parts_cover_a_batch_once(monkeypatch, processes, n):
    rows = []
    for rank in range(processes):
        monkeypatch.setattr("zoo.training.together.together", lambda: processes)
        monkeypatch.setattr("zoo.training.together.number", lambda rank=rank: rank)
        rows.append(np.arange(n)[part(n)])
    assert np.concatenate(rows).tolist() == list(range(n))
