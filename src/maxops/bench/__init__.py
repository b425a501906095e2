"""Benchmarks against other libraries and the machine's memory bandwidth, behind `maxops bench`.

    grid <- inputs                        cases, as data; their arrays, and the expected results
    timing <- limits, libraries           what is timed: bare loads and stores, other libraries' calls, ours
    session, compare                      a run, as JSON; two installs of maxops in turn
    random_calls                          calls drawn at random beside NumPy's and torch's, timed and reported
    report <- page                        what a run's JSON says

`import maxops` imports nothing from this package.
"""
