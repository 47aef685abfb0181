# An MCP server over standard input and output that misbehaves on demand: its tools are named after what they do.
# $1 is a file to which each start adds a line; $2 says how it greets.
echo started >>"$1"
echo "warming up" >&2
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
fault() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":%s,"message":"%s"}}\n' "$id" "$1" "$2"; }
text() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
tool() { printf '{"name":"%s","description":"Does %s.","inputSchema":{"type":"object","properties":{"x":{"type":"string"}}}%s}' "$1" "$1" "$2"; }
# A tool with a schema of 28 definitions. Each refers to the next one twice, so there are 2^28 schemas once references are expanded.
doubled() {
  defs='"d28":{"type":"string"}'
  k=0
  while [ $k -lt 28 ]; do
    next="{\"\$ref\":\"#/\$defs/d$((k + 1))\"}"
    defs="$defs,\"d$k\":{\"anyOf\":[$next,$next]}"
    k=$((k + 1))
  done
  printf '{"name":"doubled","description":"Doubles.","inputSchema":{"type":"object","$defs":{%s},"properties":{"x":{"$ref":"#/$defs/d0"}}}}' "$defs"
}
# Asks a person; the answer is in $got.
elicit() {
  printf '{"jsonrpc":"2.0","id":"q%s","method":"elicitation/create","params":%s}\n' "$id" "$1"
  IFS= read -r got
}
# The answer of a person, as a text without quotes.
given() {
  case $got in
    *'"action":"accept"'*)
      got=${got#*\"content\":}
      text "booked $(printf %s "$got" | tr -d '"{}')"
      ;;
    *'"action":"decline"'*) text "declined" ;;
    *'"action":"cancel"'*) text "nobody answered" ;;
    *) text "no answer" ;;
  esac
}
day='{"message":"Which day?","requestedSchema":{"type":"object","properties":{"when":{"type":"string","format":"date"},"seats":{"type":"integer","minimum":1,"default":1}},"required":["when"]}}'
fill() { head -c "$1" /dev/zero | tr '\0' "$2"; }

call() {
  # What stands in `_meta` before has names, too.
  name=${1#*\},\"name\":\"}
  name=${name%%\"*}
  case $name in
    echo) text "hello" ;;
    pid) text "$$" ;;
    fail) answer '{"content":[{"type":"text","text":"no such file"}],"isError":true}' ;;
    refuse) fault -32602 'no such tool' ;;
    internal) fault -32603 'out of order' ;;
    chatty)
      echo "debug: about to answer"
      echo '{"not":"a message"}'
      echo
      text "after the noise"
      ;;
    huge) head -c 100000000 /dev/zero | tr '\0' x ;;
    endless) yes "this is no message" ;;
    silent) : ;;
    die)
      echo "disk on fire" >&2
      exit 3
      ;;
    unreadable) printf '{"jsonrpc":"2.0","id":%s,"result":[1,2]}\n' "$id" ;;
    deep)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[],"structuredContent":{"n":' "$id"
      head -c 5000 /dev/zero | tr '\0' '['
      head -c 5000 /dev/zero | tr '\0' ']'
      printf '}}}\n'
      ;;
    patient)
      token=${1#*\"progressToken\":}
      token=${token%%[,\}]*}
      printf '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":1,"message":"half way"}}\n' "$token"
      until grep -q go "$2"; do :; done
      text "at last"
      ;;
    change)
      echo changed >>"$2"
      echo '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
      text "changed"
      ;;
    strict) if grep -q changed "$2"; then fault -32602 'it wants y now'; else text "fine"; fi ;;
    structured) answer '{"content":[{"type":"text","text":"ignored"}],"structuredContent":{"n":1}}' ;;
    wide) answer '{"content":[{"type":"text","text":"ignored"}],"structuredContent":{"wei":12345678901234567890123,"big":1e22}}' ;;
    wide_text) text '{\"wei\":12345678901234567890123}' ;;
    long)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"
      head -c 9000000 /dev/zero | tr '\0' x
      printf '"}]}}\n'
      ;;
    last_words)
      head -c 17000000 /dev/zero | tr '\0' x
      echo "disk on fire" >&2
      exit 3
      ;;
    misfit) answer '{"content":[],"structuredContent":{"n":"one"}}' ;;
    picture) answer '{"content":[{"type":"text","text":"A dot."},{"type":"image","data":"aGk=","mimeType":"image/png"},{"type":"resource","resource":{"uri":"file:///tmp/../etc/notes.txt","mimeType":"text/plain","text":"remember"}},{"type":"resource_link","uri":"https://example.com/a","name":"a"},{"type":"image","data":"***","mimeType":"image/gif"}]}' ;;
    asks)
      echo '{"jsonrpc":"2.0","id":"r1","method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{}}}}'
      read -r one
      echo '{"jsonrpc":"2.0","id":"r2","method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}'
      read -r two
      echo '{"jsonrpc":"2.0","id":"r3","method":"roots/list"}'
      read -r three
      got=
      case $one in *decline*) got="$got declined" ;; esac
      case $two in *error*) got="$got no-model" ;; esac
      case $three in *'"roots":[]'*) got="$got no-roots" ;; esac
      text "got:$got"
      ;;
    books)
      echo asked >>"$2"
      elicit "$day"
      given
      ;;
    books_twice)
      echo asked >>"$2"
      elicit "$day"
      elicit "$day"
      given
      ;;
    # Ends while a person is asked.
    books_badly)
      echo asked >>"$2"
      printf '{"jsonrpc":"2.0","id":"q%s","method":"elicitation/create","params":%s}\n' "$id" "$day"
      until grep -q go "$2"; do :; done
      exit 3
      ;;
    confirms)
      elicit '{"message":"Sure?","requestedSchema":{"type":"object","properties":{}}}'
      given
      ;;
    tells)
      elicit "{\"message\":\"Is it $SECRET?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}"
      given
      ;;
    logs_in)
      elicit '{"message":"Log in.","requestedSchema":{"type":"object","properties":{"user":{"type":"string"},"password":{"type":"string"}}}}'
      given
      ;;
    sends_away)
      elicit '{"mode":"url","message":"Pay here.","url":"https://example.com/pay","elicitationId":"e1"}'
      given
      ;;
    # A request that stands alone: the first one is answered by a question.
    reserves)
      case $1 in
        *'"requestState":"half done"'*)
          echo "asked again" >>"$2"
          got=$1
          given
          ;;
        *)
          echo asked >>"$2"
          answer "{\"resultType\":\"input_required\",\"inputRequests\":{\"day\":{\"method\":\"elicitation/create\",\"params\":$day}},\"requestState\":\"half done\"}"
          ;;
      esac
      ;;
    links)
      answer '{"content":[{"type":"text","text":"Two files."},{"type":"resource_link","uri":"file:///a.txt","name":"a.txt","mimeType":"text/plain"},{"type":"resource_link","uri":"file:///dot.png","name":"dot"},{"type":"resource_link","uri":"file:///gone","name":"gone"},{"type":"resource_link","uri":"file:///vast","name":"vast","size":99999999}]}'
      ;;
    key)
      case $1 in *traceparent*) text "with a trace" ;; *dev.steersman/idempotency-key*) text "with a key" ;; *) text "without" ;; esac
      ;;
    wants_more) answer '{"resultType":"input_required","requestState":"s"}' ;;
    wants_more_badly) answer '{"resultType":"input_required"}' ;;
    handle) answer '{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":null}' ;;
    of_another_kind) answer '{"resultType":"elsewhere","content":[{"type":"text","text":"hello"}]}' ;;
    nothing_at_all) answer '{}' ;;
    fill_*) answer "{\"content\":[{\"type\":\"text\",\"text\":\"$(fill "${name#fill_}" .)$SECRET$(fill 3000 '~')\"}],\"isError\":true}" ;;
    fault_*) fault -32603 "$(fill "${name#fault_}" .)$SECRET$(fill 3000 '~')" ;;
    last_*)
      printf %s "$(fill 900 .)$SECRET$(fill "${name#last_}" '~')" >&2
      exit 3
      ;;
    printed_*)
      printf '%s\n' "$(fill "${name#printed_}" .)$SECRET$(fill 3000 '~')"
      exit 3
      ;;
    long_*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"%s' "$id" "$(fill "${name#long_}" .)$SECRET"
      head -c 9000000 /dev/zero | tr '\0' x
      printf '"}]}}\n'
      ;;
    environment) text "HOME=${HOME:-} SECRET=${SECRET:-} OTHER=${OTHER:-}" ;;
    cancelled) echo "cancel-me $id" >>"$2" ;;
    *) fault -32602 "unknown tool" ;;
  esac
}

case ${2:-} in
  dead)
    echo "no licence found" >&2
    exit 1
    ;;
  "dead if told")
    if grep -q dead "$1"; then exit 1; fi
    ;;
  mute) while IFS= read -r line; do :; done ;;
  noise) while :; do echo "I am no server"; done ;;
esac

while IFS= read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      case ${2:-} in
        alone) fault -32601 "no such method" ;;
        linked) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"faulty","version":"1"}}' ;;
        *) answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"faulty","version":"1"}}' ;;
      esac
      ;;
    *'"method":"server/discover"'*)
      case ${2:-} in
        alone) answer '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}' ;;
        *) fault -32601 "no such method" ;;
      esac
      ;;
    *'"method":"resources/read"'*)
      echo "read" >>"$1"
      case $line in
        *file:///a.txt*) answer '{"contents":[{"uri":"file:///a.txt","mimeType":"text/plain","text":"remember"}]}' ;;
        *file:///dot.png*) answer '{"contents":[{"uri":"file:///dot.png","mimeType":"image/png","blob":"aGk="}]}' ;;
        *) fault -32002 "there is no such file" ;;
      esac
      ;;
    *'"method":"tools/list"'*)
      case ${2:-} in vast) head -c 100000000 /dev/zero | tr '\0' x ;; esac
      list=$(tool echo ',"annotations":{"readOnlyHint":true}')
      list="$list,$(tool fail),$(tool refuse),$(tool structured ',"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}}}')"
      case ${2:-} in asks | alone) list="$(tool books),$(tool books_twice),$(tool books_badly),$(tool confirms),$(tool logs_in),$(tool sends_away),$(tool reserves)" ;; esac
      case ${2:-} in grows) list="$(tool change),$(tool strict),$(tool patient),$list" ;; esac
      case ${2:-} in doubled) list="$(doubled),$list" ;; esac
      case ${2:-} in strange) list="$(tool 'read file/\u001b[31m'),$list" ;; esac
      if grep -q changed "$1"; then list="$list,$(tool new_one)"; fi
      answer "{\"tools\":[$list]}"
      ;;
    *'"method":"tools/call"'*) call "$line" "$1" ;;
    *'"method":"notifications/cancelled"'*) echo "told to cancel" >>"$1" ;;
  esac
done
