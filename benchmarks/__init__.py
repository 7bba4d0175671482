"""Benchmarks: run each as `python -m benchmarks.NAME`. Figures are ratios within one run; machines are noisy."""
