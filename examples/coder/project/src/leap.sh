#!/bin/sh
# leap.sh YEAR: whether it is a leap year.
year=$1
if [ $((year % 4)) -eq 0 ] && [ $((year % 100)) -ne 0 ]; then
  echo yes
else
  echo no
fi
