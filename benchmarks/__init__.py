"""Benchmarks: run each as `python -m benchmarks.NAME`. Figures are ratios within one run; machines are noisy."""

import os

# Threads of numpy's BLAS spin for some 2^26 cycles before they sleep, beside whatever is measured next. It reads this
# when numpy is imported.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
