"""OpenVINO's IR: models of Maximum, ReduceMax and SegmentMax, read and run without OpenVINO."""

from maxops.openvino.ir import IRWarning, load

__all__ = ["IRWarning", "load"]
