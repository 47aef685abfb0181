#!/bin/sh
# Runs from the folder of the project. Says what is wrong; ends with 0 if nothing is.
wrong=0
is() {
  got=$(sh "$2" $3)
  if [ "$got" != "$1" ]; then
    echo "$2 $3: expected $1, got $got"
    wrong=$((wrong + 1))
  fi
}
is yes src/leap.sh 2024
is no src/leap.sh 2023
is no src/leap.sh 1900
is yes src/leap.sh 2000
is 29 src/days.sh "2024 2"
is 28 src/days.sh "1900 2"
is 29 src/days.sh "2000 2"
is 30 src/days.sh "2023 9"
is 31 src/days.sh "2023 12"
if [ $wrong -eq 0 ]; then echo "all passed"; else echo "$wrong failed"; exit 1; fi
