"""Speed and size of wellworn, each as a ratio to a bare baseline measured in the same run.

`python -m bench` prints one table per subject and writes `bench/out/results.json` and `bench/out/cost_vs_size.svg`.
The machine may be busy: what is compared takes turns, call by call, and medians are reported.
"""
