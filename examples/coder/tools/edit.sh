# edit.sh FOLDER PATH KEEP, with OLD and NEW in the environment: replaces OLD, which stands once in the file, by NEW.
#
# It may die anywhere and be run again with the same IDEMPOTENCY_KEY. What the file is to become is written down under the key
# first, whole, beside what it was, and put into place by a rename after that; so a second run puts the same into the same
# place, and leaves alone what somebody else changed in between. What the model can mend is a result and no failure: what fails and may be repeated is repeated.
. tools/inside.sh
say() {
  printf '{"changed": %s, "said": "%s"}\n' "$1" "$2"
  exit 0
}
refuse() { say false "Not changed: $1."; }
inside "$1" "$2"
case "$2/" in
  "$3"/*) say false "Not changed: nobody edits what lies in $3." ;;
esac
mkdir -p -- .coder || exit 1
new=.coder/$IDEMPOTENCY_KEY
if [ ! -f "$new" ]; then
  [ -n "$OLD" ] || say false "Not changed: the old text is empty."
  cp -- "$file" "$new.was" || exit 1
  awk '
    { all = all $0 "\n" }
    END {
      old = ENVIRON["OLD"]; by = ENVIRON["NEW"]
      at = index(all, old)
      if (!at) exit 3
      behind = substr(all, at + length(old))
      if (index(behind, old)) exit 4
      printf "%s%s%s", substr(all, 1, at - 1), by, behind
    }' "$new.was" >"$new.part"
  case $? in
    0) mv -- "$new.part" "$new" || exit 1 ;;
    3) rm -f -- "$new.part"; say false "Not changed: the old text does not stand in $2. Read it again." ;;
    4) rm -f -- "$new.part"; say false "Not changed: the old text stands in $2 more than once. Give more of it." ;;
    *) exit 1 ;;
  esac
fi
if cmp -s -- "$file" "$new"; then say true "$2 is changed."; fi
cmp -s -- "$file" "$new.was" || say false "Not changed: somebody changed $2 in between. Read it again."
put=$dir/.coder-$IDEMPOTENCY_KEY
# a copy first: so the file keeps its rights
cp -p -- "$file" "$put" && cat -- "$new" >"$put" && mv -f -- "$put" "$file" || exit 1
say true "$2 is changed."
