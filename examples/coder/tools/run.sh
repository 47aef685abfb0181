# run.sh FOLDER COMMAND: runs the one command that the definition allows, in the folder. What it printed is the result,
# whether it went well or not.
cd -- "$1" || exit 1
said=$(sh -c "$2" 2>&1 </dev/null)
code=$?
if [ "$code" = 0 ]; then ok=true; else ok=false; fi
printf '%s\n(exit %s)\n' "$said" "$code" | tail -c 8000 | awk -v ok="$ok" '
  { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); gsub(/[[:cntrl:]]/, ""); all = all sep $0; sep = "\\n" }
  END { printf "{\"ok\": %s, \"said\": \"%s\"}\n", ok, all }'
