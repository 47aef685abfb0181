# list.sh FOLDER: its files, at most 200, without what is hidden.
cd -- "$1" || exit 1
find . -name '.?*' -prune -o -type f -print | sed 's|^\./||' | LC_ALL=C sort | head -n 200
