import { json } from 'node:stream/consumers';

/** What an appliance is given when it is set up, and what it is to do. */
export interface Given {
  /** The hub's HTTPS origin. */
  readonly hub: string;
  readonly client_id: string;
  readonly client_secret: string;
  /** Where the cloud API is. */
  readonly api: string;
  readonly authentication: 'basic' | 'post';
  readonly scope: string;
}

/** A token response, as far as the clients show it. */
interface Token {
  readonly access_token: unknown;
  readonly expires_in: unknown;
  readonly scope: unknown;
}

/** Runs one client as a program: what it is given comes on stdin, and what its token was good for goes to stdout. */
export async function converse(getToken: (given: Given) => Promise<Token>): Promise<void> {
  const given = (await json(process.stdin)) as Given;
  const { access_token, expires_in, scope } = await getToken(given);
  const answer = await fetch(`${given.api}/api/whoami`, { headers: { authorization: `Bearer ${access_token}` } });
  const { user } = (await answer.json()) as { user: unknown };
  process.stdout.write(JSON.stringify({ expires_in, scope, user }));
}
