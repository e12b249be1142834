# Sourced by the scripts beside it: `ensure_venv EXTRAS` makes or refreshes .venv in the project's root.
# It installs again only when pyproject.toml or the set of extras has changed since the last time.
# Starts at the same time take turns.

_die() {
  printf '%s: %s\n' "${0##*/}" "$1" >&2
  exit 69
}

# Print the first python that is new enough and can make an environment.
_find_python() {
  local candidate without_pip=""
  for candidate in "${PYTHON:-python3}" python3 python3.13 python3.12 python3.11 python3.14 /usr/bin/python3; do
    "$candidate" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
    if "$candidate" -c 'import ensurepip' 2>/dev/null; then
      printf '%s\n' "$candidate"
      return
    fi
    without_pip="${without_pip:-$candidate}"
  done
  [ -n "$without_pip" ] || _die "needs Python 3.11 or newer and found none; install one, or name it in PYTHON"
  # Debian keeps ensurepip in a package of its own; a pip from elsewhere does as well.
  "$without_pip" -m pip --version >/dev/null 2>&1 ||
    _die "$without_pip cannot make an environment with pip; install it (Debian, Ubuntu: apt install python3-venv)"
  printf '%s\n' "$without_pip"
}

# A moved environment names its old place in every program of its own, so it does not count.
_venv_works() {
  local made_in
  made_in="$(sed -n 3p .venv/.installed 2>/dev/null)"
  [ -z "$made_in" ] || [ "$made_in" = "$(pwd -P)" ] || return
  .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

_make_venv() {
  local python="$1"
  rm -rf .venv
  if "$python" -c 'import ensurepip' 2>/dev/null; then
    "$python" -m venv .venv
  else
    "$python" -m venv --without-pip .venv
    "$python" -m pip --python .venv/bin/python install -qq pip
  fi
}

_pyproject_digest() {
  .venv/bin/python -c 'import hashlib; print(hashlib.sha256(open("pyproject.toml", "rb").read()).hexdigest())'
}

# Args: extras, separated by commas. Run in the project's root.
ensure_venv() {
  local stamp=.venv/.installed python digest extras
  python="$(_find_python)" || exit
  # The lock is on the folder itself, as flock(2), held by this shell's descriptor 9.
  exec 9<.
  "$python" -c 'import fcntl; fcntl.flock(9, fcntl.LOCK_EX)'
  _venv_works || _make_venv "$python" || _die "could not make .venv; see above"
  digest="$(_pyproject_digest)"
  extras="$1"
  if [ -f "$stamp" ]; then
    # What was asked for before stays installed.
    extras="$(printf '%s,%s' "$(sed -n 2p "$stamp")" "$1" | tr ',' '\n' | sed '/^$/d' | sort -u | paste -sd, -)"
  fi
  if [ "$(head -n 2 "$stamp" 2>/dev/null)" != "$digest"$'\n'"$extras" ]; then
    printf '%s: installing into .venv (%s)\n' "${0##*/}" "$extras" >&2
    .venv/bin/python -m pip install -qq --disable-pip-version-check -e ".${extras:+[$extras]}" 9<&- ||
      _die "could not install the packages; see above, then start again"
    # As pip does for whatever else it installs: without it, what is started often takes half as long again to start.
    .venv/bin/python -m compileall -q actors hostler hostres store
    printf '%s\n%s\n%s\n' "$digest" "$extras" "$(pwd -P)" >"$stamp.new"
    mv "$stamp.new" "$stamp"
  fi
  exec 9<&-
}
