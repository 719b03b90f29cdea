# Sourced by scripts/test and scripts/demo: finds a Python and keeps a virtual environment fresh.
# Sets nothing outside the repository and activates nothing: callers use "$VENV/bin/python".

# Prints the first interpreter that is new enough and can make an environment. A name on the PATH
# proves nothing (version managers leave shims that only print a complaint), so each is tried.
find_python() {
  local candidate
  for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.14 python; do
    [ -n "$candidate" ] || continue
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
      >/dev/null 2>&1; then
      echo "$candidate"
      return 0
    fi
  done
  echo "No Python 3.11 or newer with the venv module was found on the PATH." >&2
  echo "Install one (on Debian and Ubuntu: apt install python3 python3-venv)," >&2
  echo "or name it: PYTHON=/path/to/python3 $0" >&2
  return 1
}

# Prints 3012 for a released CPython 3.12 that can make an environment; 0 for a trial version, or for
# one without the global lock, which few packages are built for; nothing if it is no interpreter.
version_of() {
  "$1" - 2>/dev/null <<'PY'
import ensurepip, sys, sysconfig, venv

usual = sys.version_info.releaselevel == "final" and sys.implementation.name == "cpython"
usual = usual and not sysconfig.get_config_var("Py_GIL_DISABLED")
print(sys.version_info[0] * 1000 + sys.version_info[1] if usual else 0)
PY
}

# newer_python PYTHON: prints the newest interpreter on the PATH, or that pyenv keeps, whose version
# is above that of PYTHON.
newer_python() {
  local candidate newest version found=
  newest=$(version_of "$1")
  for candidate in python3 python3.{12..20} "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python; do
    version=$(version_of "$candidate") || continue
    if [ "${version:-0}" -gt "${newest:-0}" ]; then
      newest=$version found=$candidate
    fi
  done
  [ -n "$found" ] && echo "$found"
}

# ensure_environment DIR EXTRAS: makes DIR if need be and installs the package into it, editable.
# The stamp holds a hash of what decides the installation, so an unchanged one costs nothing.
ensure_environment() {
  local dir=$1 extras=$2 python stamp
  if ! "$dir/bin/python" -c 'import pip' >/dev/null 2>&1; then
    python=$(find_python) || return 1
    echo "Making $dir with $("$python" --version)"
    "$python" -m venv --clear "$dir" || return 1
  fi
  stamp=$("$dir/bin/python" - "$extras" <<'PY'
import hashlib, json, pathlib, sys, tomllib

with open("pyproject.toml", "rb") as file:
    document = tomllib.load(file)
decides = [document["build-system"], document["project"], sys.argv[1], sys.version]
decides += [str(pathlib.Path.cwd()), sys.prefix]
print(hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest())
PY
  ) || return 1
  if [ "$(cat "$dir/.installed" 2>/dev/null)" = "$stamp" ]; then
    return 0
  fi
  echo "Installing the package and what it needs into $dir"
  rm -f "$dir/.installed"
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".$extras" \
    || return 1
  echo "$stamp" >"$dir/.installed"
}

# ensure_newest DIR PYTHON: makes or keeps DIR, an environment of that interpreter for the gate, and
# once a day brings what the package needs and is compared with to its newest releases.
ensure_newest() {
  local dir=$1 python=$2 today
  if [ "$(version_of "$dir/bin/python")" != "$(version_of "$python")" ]; then
    rm -rf "$dir"
  fi
  PYTHON=$python ensure_environment "$dir" "[dev]" || return 1
  today=$(date +%F)
  if [ "$(cat "$dir/.upgraded" 2>/dev/null)" != "$today" ]; then
    if upgrade "$dir"; then
      echo "$today" >"$dir/.upgraded"
    else
      echo "$dir: no newer releases could be looked for; its packages are those of an earlier day"
    fi
  fi
}

# upgrade DIR [OPTION...]: the newest releases of what the package needs, with pip's OPTIONs, and of
# the libraries that it is compared with. The tools of the gate stay as they are.
upgrade() {
  local dir=$1
  shift
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check \
    --upgrade --upgrade-strategy eager "$@" \
    --editable ".[codecs,demo,fast,fsspec,gcs,obstore,s3]" tensorstore zarr zarrs \
    "orbax-checkpoint; python_version >= '3.12'"
}
