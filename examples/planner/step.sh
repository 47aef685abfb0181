# One step of a move. There is no van today.
case "$1" in
  *van*) echo "cannot: no van is free before Friday" ;;
  *) echo "$1: done" ;;
esac
