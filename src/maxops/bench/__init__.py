"""How fast, against whom, and how close to what the machine can do: the measurements behind `maxops bench`.

    case <- grid <- goals           what is measured, as data
    inputs, oracle                  a case's arrays, and what is right
    way <- peers/, ours, limits     ways to do a case: others', ours, and bare loads and stores
    measure <- meaning <- session   interleaved timing; values on which peers differ; a whole run, as JSON
    peak, scaling                   memory of a call; cores that are not here
    report <- {terminal, markdown, page}    what a run's JSON says

Nothing here is imported by `import maxops`.
"""
