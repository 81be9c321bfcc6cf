#!/usr/bin/env bash
# Unmodified curl: each line of standard input is a task as JSON, and each line of standard output is JSON, as in
# client-protocol.ts. The CA is in CURL_CA_BUNDLE. curl reads the secret from standard input, so that no process list shows it.
set -euo pipefail

# A member of a JSON text without escapes.
member() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$2"; }
input() { member "$1" "$task"; }

call() { curl --silent --show-error --fail-with-body --config - "$@" && echo; }
basic() { printf 'user = "%s:%s"\n' "$(input client_id)" "$(input client_secret)"; }
metadata() { curl --silent --show-error --fail "$(input issuer)/.well-known/oauth-authorization-server"; }
endpoint() { member "$1" "$(metadata)"; }

# Shows something to a person during a task.
exec 3>&1
show() { printf '{"shown": %s}\n' "$1" >&3; }
# A text as a JSON string.
quoted() {
  local text=${1//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "${text//$'\n'/\\n}"
}

perform() {
  case $1 in
    discovery) metadata ;;
    client_secret_basic)
      basic | call --data grant_type=client_credentials --data-urlencode "scope=$(input scope)" "$(endpoint token_endpoint)"
      ;;
    client_secret_post)
      printf 'data-urlencode = "client_id=%s"\ndata-urlencode = "client_secret=%s"\n' "$(input client_id)" "$(input client_secret)" |
        call --data grant_type=client_credentials --data-urlencode "scope=$(input scope)" "$(endpoint token_endpoint)"
      ;;
    device_flow)
      device=$(basic | call --data-urlencode "scope=$(input scope)" "$(endpoint device_authorization_endpoint)")
      show "$device"
      interval=$(member interval "$device")
      for ((waited = 0; waited < $(member expires_in "$device"); waited += interval)); do
        sleep "$interval"
        response=$(basic | call --data grant_type=urn:ietf:params:oauth:grant-type:device_code \
          --data-urlencode "device_code=$(member device_code "$device")" "$(endpoint token_endpoint)") && break
        case $(member error "$response") in
          authorization_pending) ;;
          slow_down) ((interval += 5)) ;;
          *) echo "$response" >&2 && exit 1 ;;
        esac
      done
      echo "$response"
      ;;
    refresh_token)
      { basic && printf 'data-urlencode = "refresh_token=%s"\n' "$(input refresh_token)"; } |
        call --data grant_type=refresh_token "$(endpoint token_endpoint)"
      ;;
    registration)
      invited=$(input initial_access_token)
      { if [[ $invited != null ]]; then printf 'oauth2-bearer = "%s"\n' "$invited"; fi; } |
        call --json "{$(sed 's/.*"metadata": *{\([^}]*\)}.*/\1/' <<<"$task")}" "$(endpoint registration_endpoint)"
      ;;
    revocation)
      { basic && printf 'data-urlencode = "token=%s"\n' "$(input access_token)"; } | call "$(endpoint revocation_endpoint)"
      ;;
  esac
}

while IFS= read -r task; do
  set +e
  response=$(set -e; perform "$(input capability)" 2>&1 </dev/null)
  status=$?
  set -e
  if ((status == 0)); then printf '{"response": %s}\n' "$response"; else printf '{"failed": %s}\n' "$(quoted "$response")"; fi
done
