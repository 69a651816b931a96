"""The suite as other processors would run it: `make test-portable`.

numpy, OpenBLAS and Numba choose their kernels by the processor that they find, and the last bits of a sum
depend on the kernel. Each variant takes other kernels than this processor would.
"""

import os
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

FOUND = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
AVX512 = [name for name in FOUND if name == "X86_V4" or name.startswith("AVX512")]


def variants() -> list[dict[str, str]]:
    """Settings of the environment, one variant each, that this processor can run."""
    disabled = [" ".join(names) for names in (AVX512, FOUND) if names]
    cores = ["Haswell", "Prescott", *(["SkylakeX"] if AVX512 else [])]
    return [
        *({"NPY_DISABLE_CPU_FEATURES": names} for names in dict.fromkeys(disabled)),
        *({"OPENBLAS_CORETYPE": core} for core in cores),
        {"NUMBA_CPU_NAME": "generic"},  # which has its own entries in Numba's cache
    ]


def main(arguments: list[str]) -> None:
    failed = []
    for variant in variants():
        shown = " ".join(f"{name}={value!r}" for name, value in variant.items())
        print(f"== {shown}", flush=True)
        if subprocess.run([sys.executable, "-m", "pytest", *arguments], env=os.environ | variant).returncode:
            failed.append(shown)
    print("\n".join([f"== {len(failed)} of {len(variants())} variants failed", *failed]))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
