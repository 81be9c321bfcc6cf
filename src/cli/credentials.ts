import type { CredentialsAnswer } from '../control/messages.ts';
import { print, printJson } from './output.ts';

/**
 * Shows an appliance's credentials, which the hub gives out once.
 * @param done what was done, for people
 */
export function showCredentials(issued: CredentialsAnswer, done: string, json: boolean): void {
  if (json) {
    const { name, client_id, client_secret, token_endpoint, ca_fingerprint } = issued;
    printJson({ name, client_id, client_secret, token_endpoint, ca_fingerprint });
    return;
  }
  print(`${done}

  client_id       ${issued.client_id}
  client_secret   ${issued.client_secret}   (shown this once)
  token_endpoint  ${issued.token_endpoint}
  ca_fingerprint  ${issued.ca_fingerprint}

Once it is paired, it gets a token with:

  latchkey ca > latchkey-ca.pem
  curl --cacert latchkey-ca.pem --config - --data grant_type=client_credentials \\
    '${issued.token_endpoint}' <<'EOF'
user = "${issued.client_id}:${issued.client_secret}"
EOF`);
}
