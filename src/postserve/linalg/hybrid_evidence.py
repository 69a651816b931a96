"""The evidence of the hybrid model: per block one variance of the arms' own weights, and one of the shared.

The weights are (w_0, delta_1, …, delta_K) with u·(w_0 + delta_a) as the mean, so the joint precision has (K +
1)·dim rows. Its inverse P needs none of them together: with A_a = S_a + Lambda_1, w_a = A_a^{-1} b_a, F_a =
A_a^{-1} Lambda_1, G_a = I - F_a, and A_0, m_0 of the shared regression (`hybrid.py`),

    P_00 = A_0^{-1},  P_a0 = -G_a A_0^{-1},  P_ab = [a = b] A_a^{-1} + G_a A_0^{-1} G_b^T,
    m_a = w_a - G_a m_0,  log det = sum_a log det A_a + log det A_0,
    b^T P b = sum_a b_a·w_a + c·m_0,

and sums over pairs of arms factor: sum_{a,b} ||G_{a,i} A_0^{-1} G_{b,j}^T||² = tr(A_0^{-1} H_i A_0^{-1} H_j)
with H_i = sum_a G_{a,i}^T G_{a,i}. Hyperprior, units and search are those of `evidence.py`, over the
blocks of the arms' own weights and, after them, those of the shared ones.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from postserve.linalg import evidence
from postserve.linalg.cholesky import EPS, factorise, factorise_all
from postserve.linalg.kernels import cholesky as kernels
from postserve.types import FloatArray

ENTRIES_AT_ONCE = 2**15
"""Entries of the arms' matrices that go through numpy at once: enough to hide its overhead, and few enough
for a processor's cache."""

ROWS_AT_ONCE = 128
"""Rows of a root between two matrix products."""


def both_levels(units: evidence.Units, flat: bool = False) -> evidence.Units:
    """The units of the own and of the shared weights: both multiply the same u.

    With a flat level, the last of the shared weights is none: it is integrated out.
    """
    columns = None if units.columns is None else np.tile(units.columns, 2)
    both = evidence.Units(np.tile(units.blocks, 2), units.outputs, columns)
    if not flat or columns is None:
        return both
    return both._replace(blocks=both.blocks[:-1], columns=columns[:-1])


def taught(gram: FloatArray, inverse: FloatArray, ridge: FloatArray) -> FloatArray:
    """Lambda_1 - Lambda_1 A^{-1} Lambda_1: the gram of what the sums of arms, (…, d, d), teach w_0.

    Written as G^T Lambda_1 G + (R F)^T (R F), S = R^T R, a sum of squares at its minimum over F: nothing
    cancels, however different Lambda_1 and S are, and rounding in A^{-1} enters squared.
    """
    F = inverse * ridge
    G = np.eye(len(ridge)) - F
    RF, RG = semidefinite_root(gram) @ F, np.sqrt(ridge)[:, None] * G
    return np.asarray(RG.mT @ RG + RF.mT @ RF)


def semidefinite_root(gram: FloatArray) -> FloatArray:
    """R, (…, r, d), R^T R = S of each gram (…, d, d); a pivot within rounding of 0 is 0.

    There are as many rows as the largest rank needs.
    """
    dim = gram.shape[-1]
    grams = gram.reshape(math.prod(gram.shape[:-2]), dim, dim)  # not -1, which nothing tells if dim is 0
    roots = np.zeros(grams.shape)
    rank = max((_fill_root(S, R) for S, R in zip(grams, roots, strict=True)), default=0)
    return roots[:, :rank].reshape(*gram.shape[:-2], rank, dim)


def _fill_root(S: FloatArray, R: FloatArray) -> int:
    """Fill the first rows of R, some at a time: what they leave of S is a product; returns how many."""
    dim, rank, least = len(S), 0, len(S) * EPS * np.diagonal(S)
    for start in range(0, dim, ROWS_AT_ONCE):
        some, rest = slice(start, start + ROWS_AT_ONCE), slice(start, dim)
        left = S[some, rest] - R[:rank, some].T @ R[:rank, rest] if rank else S[some, rest].copy()
        rank += kernels.semidefinite_rows(left, least[some], R[rank:, rest])
    return rank


class HybridObjective(evidence.Objective):
    """The objective over (own blocks, shared blocks).

    `departed` are sums of rows that w_0 alone explains: what removed arms taught it.
    """

    def __init__(
        self,
        sums: evidence.Sums,
        departed: evidence.Sums,
        blocks: Sequence[int],
        units: evidence.Units,
        *,
        parts: FloatArray | None = None,
        level: bool = False,
    ) -> None:
        super().__init__(sums, blocks, units, level=level)
        self.root = semidefinite_root(self.gram)
        self.departed = self._scaled(departed)
        self.squares += self.departed.squares[0]
        self.rounds += float(departed.pulls[0])
        self.shared_sizes = self.sizes[:-1] if level else self.sizes
        self.n_weights = np.concatenate([self.n_weights, self.shared_sizes])
        self.units = both_levels(units, level)
        self.parts = evidence.equal_parts(len(self.units.blocks)) if parts is None else parts
        self.log_tau2_centre = -np.log(self.parts[self.units.blocks > 0.0])

    def posterior(self, log_ridge: FloatArray) -> evidence.Posterior:
        """First each arm alone, then w_0 from what they teach it, then the arms given w_0."""
        n = len(self.sizes)
        ridge = np.repeat(np.exp(log_ridge[:n]), self.sizes)
        inverse, weights, log_dets = factorise_all(self.gram, ridge, self.moment)
        gram, H = self._taught(inverse, ridge)
        moment = self.departed.moment[0] + ridge * weights.sum(axis=0)
        shared_ridge = np.repeat(np.exp(log_ridge[n:]), self.shared_sizes)
        dim = len(shared_ridge)
        shared = factorise(gram[:dim, :dim], shared_ridge, moment[:, :dim])

        log_det = float(log_dets.sum()) + shared.log_det
        log_det -= float((self.n_weights * log_ridge).sum())
        explained = np.vecdot(self.moment, weights).sum(axis=0) + np.vecdot(moment[:, :dim], shared.solution)
        left_out = len(ridge) - dim  # the constant, if the level is integrated out, has no shared weight
        M, m_0 = np.pad(shared.inverse, (0, left_out)), np.pad(shared.solution, ((0, 0), (0, left_out)))
        trace, frobenius, norm, cross = self._parts_of_inverse(inverse, weights, ridge, H, M, m_0)
        k = len(log_ridge)
        parts = trace[:k], frobenius[:k, :k], norm[:, :k], cross[:, :k, :k]
        return evidence.Posterior(log_det, self.squares - explained, *parts)

    def _taught(self, inverse: FloatArray, ridge: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A_0 without its prior, which is `taught` summed over arms, and H of each block."""
        dim, blocks = len(ridge), self._slices()
        gram, H = self.departed.gram[0].copy(), np.zeros((len(blocks), dim, dim))
        for arms in self._arms_at_once():
            F = inverse[arms] * ridge
            G = np.eye(dim) - F
            RF = (self.root[arms] @ F).reshape(-1, dim)
            gram += RF.T @ RF
            for i, block in enumerate(blocks):
                rows = G[:, block].reshape(-1, dim)
                H[i] += rows.T @ rows
        gram += np.tensordot(ridge[self.starts], H, axes=1)
        return gram, H

    def _parts_of_inverse(
        self,
        inverse: FloatArray,
        weights: FloatArray,
        ridge: FloatArray,
        H: FloatArray,
        M: FloatArray,
        m_0: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Trace, frobenius, norm and cross of P and m, M being A_0^{-1}; own blocks first, then shared."""
        n, outputs, dim = len(self.sizes), len(m_0), len(M)
        trace, frobenius = np.zeros(2 * n), np.zeros((2 * n, 2 * n))
        norm, cross = np.zeros((outputs, 2 * n)), np.zeros((outputs, 2 * n, 2 * n))
        g = np.zeros((outputs, n, dim))  # g_i = sum_a G_{a,i}^T m_{a,i}
        for arms in self._arms_at_once():
            P = inverse[arms]
            G = np.eye(dim) - P * ridge
            GM = G @ M
            shared_part = GM @ G.mT
            m = weights[arms] - m_0 @ G.mT
            trace[:n] += self._blocks(np.diagonal(P + shared_part, axis1=1, axis2=2)).sum(axis=0)
            norm[:, :n] += self._blocks(m**2).sum(axis=0)
            frobenius[:n, :n] += self._block_pairs(P * (P + 2.0 * shared_part)).sum(axis=0)
            frobenius[:n, n:] += self._block_pairs(GM**2).sum(axis=0)
            cross[:, :n, :n] += self._crosses(P, m).sum(axis=0)
            for i, block in enumerate(self._slices()):
                g[:, i] += (m[:, :, block] @ G[:, block]).sum(axis=0)
        MH, gM = M @ H, g @ M
        trace[n:] = self._blocks(np.diagonal(M))
        norm[:, n:] = self._blocks(m_0**2)
        frobenius[:n, :n] += np.einsum("ijk,lkj->il", MH, MH)
        frobenius[n:, n:] = self._block_pairs(M**2)
        cross[:, :n, :n] += gM @ g.mT
        cross[:, :n, n:] = -self._blocks(gM * m_0[:, None, :])
        cross[:, n:, n:] = self._crosses(M, m_0)
        for pairs in (frobenius, cross):
            pairs[..., n:, :n] = pairs[..., :n, n:].mT
        return trace, frobenius, norm, cross

    def _crosses(self, P: FloatArray, m: FloatArray) -> FloatArray:
        """m_i^T P_ij m_j of each pair of blocks, for each output: (…, outputs, blocks, blocks)."""
        along = [m[..., block] @ P[..., block, :] for block in self._slices()]
        return np.stack([self._blocks(each * m) for each in along], axis=-2)

    def _arms_at_once(self) -> Iterator[slice]:
        models, dim, _ = self.gram.shape
        size = max(1, ENTRIES_AT_ONCE // dim**2)
        for start in range(0, models, size):
            yield slice(start, start + size)

    def _slices(self) -> list[slice]:
        return [slice(i, i + size) for i, size in zip(self.starts, self.sizes, strict=True)]
