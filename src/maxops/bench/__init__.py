"""Benchmarks against other libraries and the machine's memory bandwidth, behind `maxops bench`.

    grid <- inputs                        cases as data, with their arrays and expected results
    timing <- limits, libraries           timed code: bare loads and stores, and calls of other libraries and maxops
    session, compare                      a run as JSON, and a comparison of two installations of maxops
    random_calls                          random calls, timed against the same calls in NumPy and torch
    report <- page                        tables and pages of a run

`import maxops` imports nothing from this package.
"""
