"""The kit's cases, made once for all tests of the kit."""

from __future__ import annotations

from maxops.conformance.cases import cases

ALL = list(cases())
