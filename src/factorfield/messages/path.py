"""Messages along a path of eliminated blocks: propagate the belief forward, send information backward, smooth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from factorfield.messages.elimination import Segment
from factorfield.messages.square_root import Belief, Message
from factorfield.messages.triangular import lower_root, triangle

Array = NDArray[np.float64]


def propagate(belief: Belief, link: Segment) -> Belief:
    """The belief about the end's state, from that about the start's (the window's message included)."""
    root = lower_root(np.column_stack([link.transition @ belief.root, link.noise_root]))
    return Belief(link.transition @ belief.mean + link.shift, root)


def backward(message: Message, link: Segment) -> Message:
    """What a message about the end's state says about the start's, the window's own message included."""
    if not len(message.rows):
        return link.message
    width = len(link.transition)
    gap = message.target - message.rows @ link.shift
    top = np.column_stack([message.rows @ link.noise_root, message.rows @ link.transition, gap])
    upper = triangle(np.vstack([top, np.eye(width, 2 * width + 1)]))[width:]
    return Message(upper[:, width:-1], upper[:, -1]) * link.message


def backward_messages(links: Sequence[Segment]) -> list[Message]:
    """For every window, what all later windows say about the state at its end."""
    message, found = Message.nothing(len(links[0].transition)), []
    for link in reversed(links):
        found.append(message)
        message = backward(message, link)
    return found[::-1]


def smoothed(belief: Belief, link: Segment, future: Message) -> Belief:
    """Belief about (s, v) up to the interior noise, given everything: root (state + inner, 2 state).

    `belief` is the filtered one at the start, `future` what later windows say about the end's state.
    """
    width = len(belief.mean)
    start = np.zeros((width + len(link.offset), 2 * width))
    start[:width, :width] = belief.root
    start[width:, :width] = link.slope @ belief.root
    start[width:, width:] = link.end_noise
    mean = np.concatenate([belief.mean, link.offset + link.slope @ belief.mean])
    if not len(future.rows):
        return Belief(mean, start)
    end = Belief(
        link.transition @ belief.mean + link.shift, np.column_stack([link.transition @ belief.root, link.noise_root])
    )
    standard = end.standard(future)
    return Belief(mean + start @ standard.mean, start @ standard.root)
