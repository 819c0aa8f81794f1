"""Small numbers for strings: for names that recur, and for tokens with how many documents hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from scrubjay.index.arrays import Arrays, Ints, strings_of
from scrubjay_shared import text


class Names(dict[str | None, int]):
    """Small numbers for recurring strings (sessions, speakers, types); -1 for None. Numbers are never reused."""

    def __init__(self) -> None:
        super().__init__({None: -1})
        self.strings: list[str] = []

    def __missing__(self, name: str | None) -> int:
        found = self[name] = len(self.strings)
        self.strings.append(str(name))
        return found

    def codes(self, names: Iterable[str | None]) -> list[int]:
        """Return the numbers of strings, giving new ones the next."""
        return list(map(self.__getitem__, names))

    def find(self, name: str | None) -> int:
        """Return the number of a string, -1 of None, or -2, which no row carries, if it was never seen."""
        return self.get(name, -2)


class SpeakerNames(Names):
    """The numbers of speakers, which are also found by the tokens of their names."""

    def __init__(self) -> None:
        super().__init__()
        self._by_token: dict[str, list[int]] = {}

    def __missing__(self, name: str | None) -> int:
        number = super().__missing__(name)
        for token in dict.fromkeys(text.analyse(str(name))):
            self._by_token.setdefault(token, []).append(number)
        return number

    def named_by(self, tokens: Iterable[str]) -> list[int]:
        """Return the numbers of speakers of whose names these tokens hold one at least, ascending."""
        return sorted({number for token in tokens for number in self._by_token.get(token, ())})


class Vocabulary(dict[str, int]):
    """Token → number, with how many documents of each table hold it. A token that nobody holds is forgotten."""

    def __init__(self, tables: int) -> None:
        """`tables` is how many tables count their holders."""
        super().__init__()
        self._tables = tables
        self._strings: list[str | None] = []
        self._marks = bytearray()  # what each token says of a text that holds it
        self._holders = np.zeros((tables, 1024), np.int32)

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self._strings)
        self._strings.append(token)
        self._marks.append(text.mark_of(token))
        return number

    def numbers(self, tokens: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the numbers of tokens, giving new ones the next."""
        found = np.fromiter(map(self.__getitem__, tokens), np.int64, len(tokens))
        if len(self._strings) > self._holders.shape[1]:
            grown = np.zeros((self._tables, 2 * len(self._strings)), np.int32)
            grown[:, : self._holders.shape[1]] = self._holders
            self._holders = grown
        return found

    def marks(self, numbers: Ints) -> npt.NDArray[np.uint8]:
        """Return the `text.Mark` of each of these tokens."""
        return np.frombuffer(self._marks, np.uint8)[numbers]

    def holders(self, table: int, number: int) -> int:
        """Return how many documents of a table hold a token."""
        return int(self._holders[table, number])

    def hold(self, table: int, numbers: Ints) -> None:
        """Count one more document of a table for each of these tokens."""
        distinct, counts = np.unique(numbers, return_counts=True)
        self._holders[table, distinct] += counts.astype(np.int32)

    def release(self, table: int, numbers: Ints) -> None:
        """Count one document of a table less for each of these tokens, and forget those at zero everywhere."""
        np.subtract.at(self._holders[table], numbers, 1)
        # No np.unique: without counts it imports numpy.ma at its first use, 50 ms in which no other thread runs.
        for number in set(numbers[~self._holders[:, numbers].any(axis=0)].tolist()):
            token = self._strings[number]
            if token is not None:
                del self[token]
                self._strings[number] = None

    def pack(self, arrays: Arrays) -> list[str | None]:
        """Put what this holds into arrays, but for the tokens, which are returned: they belong under "tokens"."""
        arrays["marks"] = np.frombuffer(bytes(self._marks), np.uint8)
        arrays["holders"] = self._holders[:, : len(self._strings)].copy()
        return self._strings.copy()

    @classmethod
    def unpacked(cls, arrays: Arrays) -> Vocabulary:
        """Return what was packed."""
        made = cls(len(arrays["holders"]))
        strings = strings_of(arrays["tokens"])
        made.update({token: number for number, token in enumerate(strings) if token})
        made._strings = [token or None for token in strings]
        made._marks = bytearray(arrays["marks"])
        made._holders = arrays["holders"]
        return made
