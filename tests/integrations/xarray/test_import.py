import subprocess
import sys


def test_a_missing_library_is_named_with_its_extra():
    code = (
        "import sys; sys.modules['xarray'] = None\n"
        "try:\n"
        "    import tensorstore_py.integrations.xarray\n"
        "except ImportError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240
    )

    assert 'pip install "tensorstore-py[xarray]"' in done.stdout
