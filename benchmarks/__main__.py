"""Run every benchmark and print its ratios."""

from benchmarks import candidates, imports, refits, rounds

for benchmark in (imports, rounds, candidates, refits):
    print(f"\n{(benchmark.__doc__ or '').splitlines()[0]}")
    for what, value in benchmark.measure().items():
        print(f"  {what:<58} {value:6.2f}")
