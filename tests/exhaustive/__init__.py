"""Tests all small inputs on the miniature build: `make miniature` builds it and runs this package."""
