#!/usr/bin/env bash
# curl as it is: each line of standard input is a task as JSON, and each of standard output JSON too, as conversation.ts has
# them. The CA comes by CURL_CA_BUNDLE. The secret goes to curl by its standard input, so that no list of processes shows it.
set -euo pipefail

# A member of a JSON text that holds no escapes.
member() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$2"; }
of() { member "$1" "$given"; }

call() { curl --silent --show-error --fail-with-body --config - "$@" && echo; }
basic() { printf 'user = "%s:%s"\n' "$(of client_id)" "$(of client_secret)"; }
metadata() { curl --silent --show-error --fail "$(of issuer)/.well-known/oauth-authorization-server"; }
endpoint() { member "$1" "$(metadata)"; }

# Shows a person something on the way.
exec 3>&1
show() { printf '{"shown": %s}\n' "$1" >&3; }
# A text as JSON has it.
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//$'\n'/\\n}"
}

perform() {
  case $1 in
    discovery) metadata ;;
    client_secret_basic)
      basic | call --data grant_type=client_credentials --data-urlencode "scope=$(of scope)" "$(endpoint token_endpoint)"
      ;;
    client_secret_post)
      printf 'data-urlencode = "client_id=%s"\ndata-urlencode = "client_secret=%s"\n' "$(of client_id)" "$(of client_secret)" |
        call --data grant_type=client_credentials --data-urlencode "scope=$(of scope)" "$(endpoint token_endpoint)"
      ;;
    device_flow)
      device=$(basic | call --data-urlencode "scope=$(of scope)" "$(endpoint device_authorization_endpoint)")
      show "$device"
      interval=$(member interval "$device")
      for ((waited = 0; waited < $(member expires_in "$device"); waited += interval)); do
        sleep "$interval"
        answer=$(basic | call --data grant_type=urn:ietf:params:oauth:grant-type:device_code \
          --data-urlencode "device_code=$(member device_code "$device")" "$(endpoint token_endpoint)") && break
        case $(member error "$answer") in
          authorization_pending) ;;
          slow_down) ((interval += 5)) ;;
          *) echo "$answer" >&2 && exit 1 ;;
        esac
      done
      echo "$answer"
      ;;
    refresh_token)
      { basic && printf 'data-urlencode = "refresh_token=%s"\n' "$(of refresh_token)"; } |
        call --data grant_type=refresh_token "$(endpoint token_endpoint)"
      ;;
    registration)
      invited=$(of initial_access_token)
      { if [[ $invited != null ]]; then printf 'oauth2-bearer = "%s"\n' "$invited"; fi; } |
        call --json "{$(sed 's/.*"metadata": *{\([^}]*\)}.*/\1/' <<<"$given")}" "$(endpoint registration_endpoint)"
      ;;
    revocation)
      { basic && printf 'data-urlencode = "token=%s"\n' "$(of access_token)"; } | call "$(endpoint revocation_endpoint)"
      ;;
  esac
}

while IFS= read -r given; do
  set +e
  answer=$(set -e; perform "$(of capability)" 2>&1 </dev/null)
  status=$?
  set -e
  if ((status == 0)); then printf '{"said": %s}\n' "$answer"; else printf '{"failed": %s}\n' "$(quoted "$answer")"; fi
done
