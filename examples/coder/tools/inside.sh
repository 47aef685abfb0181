# Sourced by the tools. `inside FOLDER PATH` sets `file` to the path of a file that lies in the folder, or says why not and
# ends. What leads out of it (`..`, a symbolic link, hidden names) is refused, whatever the definition let through.
refuse() {
  echo "$1" >&2
  exit 1
}
inside() {
  root=$(cd -P -- "$1" 2>/dev/null && pwd -P) || refuse "there is no folder $1"
  case "/$2/" in
    */../* | */./* | *//* | */.*) refuse "$2 is no path within the project" ;;
  esac
  dir=$(cd -P -- "$root/$(dirname -- "$2")" 2>/dev/null && pwd -P) || refuse "there is no file $2"
  case "$dir/" in
    "$root"/*) ;;
    *) refuse "$2 lies outside of the project" ;;
  esac
  # A folder that is a link may stay within the project, and lead to what is hidden or kept.
  case "$(dirname -- "$2")" in
    .) [ "$dir" = "$root" ] || refuse "$2 goes through a link" ;;
    *) [ "$dir" = "$root/$(dirname -- "$2")" ] || refuse "$2 goes through a link" ;;
  esac
  file=$dir/$(basename -- "$2")
  if [ -L "$file" ] || [ ! -f "$file" ]; then refuse "there is no file $2"; fi
}
