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
