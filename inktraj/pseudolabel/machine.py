"""What a result may depend on beyond its settings: versions of packages, and the machine."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version

import inktraj

_PACKAGES = ("numpy", "numba", "pillow", "shapely", "rapidfuzz", "onnxruntime", "rapidocr")
_OPENCV = ("opencv-python-headless", "opencv-python", "opencv-contrib-python-headless", "opencv-contrib-python")


def package_versions() -> dict[str, str]:
    """Versions of inktraj and of the packages whose change may change a result."""
    versions = {"inktraj": inktraj.__version__}
    for name in _PACKAGES:
        versions[name] = _version(name) or "not installed"
    versions["opencv"] = next(filter(None, map(_version, _OPENCV)), "not installed")
    return versions


def machine() -> dict[str, str | int | None]:
    """Describe the machine, without its name."""
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
