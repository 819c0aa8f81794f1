"""Arrays that grow, and the types of those that an index is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]
RowNumbers = npt.NDArray[np.intp]
Arrays = dict[str, npt.NDArray[Any]]


class Growing:
    """Parallel arrays that grow by a quarter; `self[name]` is a view of the used part and goes stale when one grows."""

    def __init__(self, dtypes: Mapping[str, Any]) -> None:
        self.used = 0
        self._arrays = {name: np.zeros(256, dtype) for name, dtype in dtypes.items()}

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self._arrays[name][: self.used]

    def append(self, count: int, values: Mapping[str, Any]) -> None:
        """Add `count` entries; a name without values is zero there."""
        need = self.used + count
        for name, array in self._arrays.items():
            if need > len(array):
                grown = np.zeros(need + need // 4, array.dtype)
                grown[: self.used] = array[: self.used]
                self._arrays[name] = grown
            self._arrays[name][self.used : need] = values.get(name, 0)
        self.used = need

    def keep(self, kept: npt.NDArray[np.intp]) -> None:
        """Keep only these entries, in this order."""
        self._arrays = {name: self[name][kept] for name in self._arrays}
        self.used = len(kept)

    def pack(self, prefix: str, arrays: Arrays) -> None:
        """Put copies of the used parts into arrays."""
        arrays.update((f"{prefix}.{name}", self[name].copy()) for name in self._arrays)

    def unpack(self, prefix: str, arrays: Arrays) -> None:
        """Become what was packed."""
        (count,) = {len(arrays[f"{prefix}.{name}"]) for name in self._arrays}
        self.append(count, {name: arrays[f"{prefix}.{name}"] for name in self._arrays})  # with room for more

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self._arrays.values())


_SAMPLED = 16  # one value in so many tells where the best begin
_SAMPLE = 8192  # values that tell it, whatever their number: sorting them takes some 60 us


def floor_of_best(values: npt.NDArray[Any], count: int) -> Any:
    """Return a value that at least `count` of the values reach, and few others; the lowest where there are few.

    Choosing the best among those that reach it is several times as fast as among all.
    """
    step = max(_SAMPLED, len(values) // _SAMPLE)
    sample = values[::step]
    taken = 2 * count // step + 8
    if taken < len(sample):
        floor = np.sort(sample)[-taken]  # numpy's partition is seven times slower where many are equal, as scores are
        if np.count_nonzero(values >= floor) >= count:
            return floor
    return values.min() if len(values) else 0


def packed_strings(strings: Sequence[str | None]) -> npt.NDArray[np.uint8]:
    """Return strings as one array; None is as ""."""
    return np.frombuffer("\n".join([string or "" for string in strings]).encode(), np.uint8)


def strings_of(packed: npt.NDArray[np.uint8]) -> list[str]:
    """Return what `packed_strings` packed."""
    return packed.tobytes().decode().split("\n") if len(packed) else []
