#!/bin/sh
# days.sh YEAR MONTH: how many days the month has.
year=$1
month=$2
case $month in
  2)
    if [ "$(sh src/leap.sh "$year")" = yes ]; then echo 29; else echo 28; fi
    ;;
  4 | 6 | 11) echo 30 ;;
  *) echo 31 ;;
esac
