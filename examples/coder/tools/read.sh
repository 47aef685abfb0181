# read.sh FOLDER PATH: the file, up to 64 KiB.
. tools/inside.sh
inside "$1" "$2"
head -c 65536 -- "$file"
