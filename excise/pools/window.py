"""How many sandboxes are made at once: one more after each that went well, half as many after one that did not.

Creation wedges under load: many started at once time out together, and starting more makes it worse. The
window grows by one per round trip while all is well and halves on a failure that a retry may mend, so that
it settles where the substrate keeps up. A failure of something begun before the last cut cuts no more: one
overload is one overload, however many it hits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from excise.errors import InputError


@dataclass(frozen=True, slots=True)
class Window:
    """Between 1 and `most` creations at once."""

    most: int
    size: float = 4.0
    cut_at_s: float = float("-inf")

    def __post_init__(self) -> None:
        if self.most < 1 or self.size < 1:
            raise InputError(
                f"creating {min(self.most, self.size):g} sandboxes at once creates none"
            )

    def room(self, making: int) -> int:
        """How many more may be begun now."""
        return max(0, int(min(self.size, self.most)) - making)

    def went_well(self) -> Window:
        """One was made."""
        return replace(self, size=min(float(self.most), self.size + 1.0 / self.size))

    def choked(self, begun_s: float, now_s: float) -> Window:
        """One that was begun at `begun_s` failed in a way that overload explains, or never ended."""
        if begun_s < self.cut_at_s:
            return self
        return replace(self, size=max(1.0, self.size / 2), cut_at_s=now_s)
