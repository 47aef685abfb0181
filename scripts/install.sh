#!/bin/sh
# Installs Steersman from a folder or an address that has the archives of a release.
#
#   sh install.sh --from FOLDER|ADDRESS [--prefix FOLDER]
#
# The files come below the prefix: /usr/local for root, else ~/.local. Nothing is installed unless the checksum of the archive is
# the one in SHA256SUMS, which is in the same folder or at the same address.
set -eu

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

from=''
prefix=''
while [ $# -gt 0 ]; do
  case $1 in
    --from | --prefix)
      [ $# -ge 2 ] || fail "$1 takes a value"
      if [ "$1" = --from ]; then from=${2%/}; else prefix=$2; fi
      shift 2
      ;;
    -h | --help)
      sed -n '2,7s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) fail "\`$1\` is not an option; there are --from and --prefix" ;;
  esac
done
[ -n "$from" ] || fail "--from takes the folder or the address of the archives"
if [ -z "$prefix" ]; then
  if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
fi

[ "$(uname -s)" = Linux ] || fail "there are archives for Linux only; this is $(uname -s)"
case $(uname -m) in
  x86_64 | amd64) machine=x86_64 ;;
  aarch64 | arm64) machine=aarch64 ;;
  *) fail "there is no archive for $(uname -m)" ;;
esac

if command -v sha256sum >/dev/null 2>&1; then
  sum_of() { sha256sum <"$1" | cut -d' ' -f1; }
elif command -v shasum >/dev/null 2>&1; then
  sum_of() { shasum -a 256 <"$1" | cut -d' ' -f1; }
else
  fail "checksums cannot be verified: there is neither sha256sum nor shasum"
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fetch() {
  case $from in
    *://*)
      if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --output "$work/$1" "$from/$1"
      elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$work/$1" "$from/$1"
      else
        fail "an address needs curl or wget"
      fi
      ;;
    *) cp "$from/$1" "$work/$1" ;;
  esac || fail "$from has no $1"
}

fetch SHA256SUMS
lines=$(grep -E "^[0-9a-f]{64} [ *]steersman-[0-9A-Za-z.+-]+-$machine-unknown-linux-[a-z]+\.tar\.gz\$" "$work/SHA256SUMS") ||
  fail "SHA256SUMS of $from names no archive for $machine"
[ "$(echo "$lines" | wc -l)" -eq 1 ] || fail "SHA256SUMS of $from names more than one archive for $machine"
sum=${lines%% *}
name=${lines#* ?}
fetch "$name"
[ "$(sum_of "$work/$name")" = "$sum" ] ||
  fail "the checksum of $name is not the one in SHA256SUMS: the file is damaged, or is another one. Nothing was installed"

tar -xzf "$work/$name" -C "$work"
tree=$work/${name%.tar.gz}
[ -f "$tree/bin/steersman" ] || fail "$name has no program"
(cd "$tree" && find . -type f) | while read -r file; do
  file=${file#./}
  mkdir -p "$prefix/$(dirname "$file")"
  # A program that runs keeps its file; the new one takes the name.
  cp "$tree/$file" "$prefix/$file.new"
  mv -f "$prefix/$file.new" "$prefix/$file"
done
# What an older version had and this one has not.
for file in "$prefix"/share/doc/steersman/* "$prefix"/share/man/man1/steersman*.1; do
  [ -e "$tree/${file#"$prefix"/}" ] || rm -f "$file"
done

echo "installed $("$prefix/bin/steersman" --version) in $prefix"
case :$PATH: in
  *:"$prefix/bin":*) echo "Next: steersman demo" ;;
  *) echo "$prefix/bin is not in PATH. Next: $prefix/bin/steersman demo" ;;
esac
