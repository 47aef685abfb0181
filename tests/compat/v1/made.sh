#!/bin/sh
# How the kept store was made, once, by the program whose forms are kept. It is not run again: what it makes now would be another store.
#
#   made.sh FOLDER      an empty folder, outside the repository; the program is on the PATH
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1/.steersman"
cd "$1"
cp -r "$here/steersman.yaml" "$here/scripts" .
export DESK_KEY=k-1 SHOP_URL=http://127.0.0.1:7411
# The shop: it answers everything with a token, and `/late` after the caller has given up.
python3 - <<'PY' &
import http.server, time
class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/late":
            time.sleep(1)
        text = b'{"token": "t-4711"}'
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(text)
    do_POST = do_GET
    def log_message(self, *of): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 7411), Shop).serve_forever()
PY
trap "kill $!" EXIT
clock() { echo "$1" >clock; }
# A session that waits or fails ends its command with another code than 0.
driven() { "$@" --clock clock || true; }
id() { sed 's/.*"session":"\([a-z0-9]*\)".*/\1/'; }

# Asks for a secret, remembers, keeps an artifact, calls a clerk whose draft is judged; what is paid waits for the boss.
clock 2026-11-27T10:30:00Z
driven steersman run --input "Pay the order 4711." --script-all scripts/first.yaml
first=$(steersman sessions --json | id)
driven steersman answer "$first" hunter2
clock 2026-11-27T10:31:00Z
driven steersman approve "$first" --as boss
driven steersman send "$first" "Thank you."
driven steersman fork "$first@3" --label other --say "Do not pay."
driven steersman rerun "$first"

# Waits for the boss.
clock 2026-11-27T10:32:00Z
driven steersman run --input "Pay the order 4712." --script-all scripts/pay.yaml

# Waits for an event that comes later, and has a message that nobody took.
driven steersman run --input "Wait for the order 4713." --script-all scripts/leave.yaml
waits=$(steersman pending --json | grep '"kind":"event"' | id)
driven steersman send "$waits" "Hurry."

# Nobody knows whether the call happened.
driven steersman run --input "Call." --script-all scripts/call.yaml

# Was cancelled; what its first line says was erased.
driven steersman run --input "Ask the boss about 4714." --script-all scripts/ask.yaml
asks=$(steersman pending --json | grep '"kind":"question"' | id)
driven steersman cancel "$asks"
steersman erase "$asks@1" --yes

# An event that nobody waits for; a schedule that began a session and missed one.
steersman send . --event left '{"order": 4799, "at": "early"}'
steersman schedule . --clock clock
clock 2026-11-29T10:30:00Z
driven steersman run --all --until-idle --script-all scripts/nightly.yaml

# A token of a tenant.
steersman token new --allow read --tenant acme --subject ann --note "for a test"
rm -rf clock scripts book
