"""tensorflow: tf.maximum, tf.reduce_max and tf.math.unsorted_segment_max, on the CPU."""

from __future__ import annotations

from functools import reduce
from types import MappingProxyType

from maxops.conformance.case import Call
from maxops.conformance.runtimes.library import Library


class TensorFlow(Library):
    """Its eager functions."""

    name = "tensorflow"
    opening = ("import tensorflow as tf",)
    # no GPU, and no start-up messages on stderr
    environment = MappingProxyType({"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"})

    def maximum(self, call: Call, names: list[str]) -> list[str]:
        """tf.maximum, from the first to the last."""
        tensors = [f"tf.constant({name})" for name in names]
        return [f"actual = {reduce(lambda made, tensor: f'tf.maximum({made}, {tensor})', tensors)}.numpy()"]

    def reduce_max(self, call: Call, data: str, axis: str, keepdims: bool) -> list[str]:
        """tf.reduce_max."""
        return [f"actual = np.asarray(tf.reduce_max(tf.constant({data}), axis={axis}, keepdims={keepdims}).numpy())"]

    def segment_max(self, call: Call, data: str, ids: str, count: str, fill: str) -> list[str]:
        """unsorted_segment_max, which takes the number of segments; then what has no ids is filled."""
        return [
            f"actual = tf.math.unsorted_segment_max(tf.constant({data}), tf.constant({ids}), {count}).numpy()",
            f"actual[np.bincount({ids}, minlength={count}) == 0] = {fill}",
        ]
