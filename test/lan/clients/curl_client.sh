#!/usr/bin/env bash
# curl as it is: the argument names the capability, what it is given comes on stdin as JSON, and what the hub said goes to
# stdout, as the last line of JSON. The CA comes by CURL_CA_BUNDLE. The secret goes to curl by its standard input, so that
# no list of processes shows it.
set -euo pipefail

given=$(cat)
# A member of a JSON text that holds no escapes.
member() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" <<<"$2"; }
of() { member "$1" "$given"; }

call() { curl --silent --show-error --fail-with-body --config - "$@" && echo; }
basic() { printf 'user = "%s:%s"\n' "$(of client_id)" "$(of client_secret)"; }
metadata() { curl --silent --show-error --fail "$(of issuer)/.well-known/oauth-authorization-server"; }
endpoint() { member "$1" "$(metadata)"; }

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
    echo "$device"
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
