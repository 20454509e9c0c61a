"""Reasoning: a channel's label, and a channel of which it is not sure that it holds a thought."""

from __future__ import annotations

#: What a thought begins with.
LABEL = "thought\n"

#: How much of an unsure thought is held, in characters: an answer that never closes its channel and is no longer
#: than this was no thought (vllm-project/vllm#49717).
_LONGEST_UNSURE = 512


class ThoughtReader:
    """Passes a thought on without its label.

    Attributes:
        label_of_text: The label that was taken from the text, to be put back if it was the answer.
    """

    def __init__(self) -> None:
        self._label: str | None = None  # what may be the label so far; None: it has been read
        self._held: list[str] | None = None  # of an unsure thought
        self._size = 0
        self.label_of_text = ""

    @property
    def holding(self) -> bool:
        """Whether text is held back."""
        return bool(self._held)

    @property
    def flows(self) -> bool:
        """Whether text is reasoning as it comes."""
        return self._label is None and self._held is None

    @property
    def unsure(self) -> bool:
        """Whether what is held may be the answer instead."""
        return self._held is not None

    def open(self) -> None:
        """A channel opens, and its label follows."""
        self._label = ""

    def open_unsurely(self, *, label: str = "") -> None:
        """A channel may be open: what follows is a thought, or the answer.

        Args:
            label: The label in the text to come, where it alone speaks for a thought; as an answer it is text too.
                Otherwise the prompt has opened the channel, or a call in its midst has left it open.
        """
        self._label, self._held, self._size = "", [], 0
        self.label_of_text = label

    def read(self, text: str) -> str:
        """The reasoning in this text."""
        if self._label is not None:
            text = self._label + text
            if len(text) < len(LABEL) and LABEL.startswith(text):
                self._label = text
                return ""
            self._label = None
            text = text.removeprefix(LABEL)
        if self._held is None:
            return text
        self._held.append(text)
        self._size += len(text)
        return self._release() if self._size > _LONGEST_UNSURE else ""

    def end(self) -> str:
        """The reasoning that was held, now that the channel or the answer ends; white space alone is none."""
        label, self._label = self._label, None
        text = self.read(label) if label and label != LABEL.strip() else ""
        if self._held is not None:
            text += self._release()
        return text if text.strip() else ""

    def _release(self) -> str:
        held, self._held = self._held or [], None
        return "".join(held)
