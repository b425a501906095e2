"""Benchmarks against other libraries and the machine's memory bandwidth, behind `maxops bench`.

    case <- grid <- goals           what is measured, as data
    inputs, oracle                  a case's arrays, and the expected results
    candidate <- libraries/, ours, limits     what is timed: other libraries' calls, ours, and bare loads and stores
    measure <- deviations <- session   interleaved timing; deviations on special values; a whole run, as JSON
    peak, scaling                   memory of a call; a model of scaling to more cores
    report <- {terminal, markdown, page}    what a run's JSON says

Nothing here is imported by `import maxops`.
"""
