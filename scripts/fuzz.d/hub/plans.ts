// Requests close to good ones, for everything that a hub serves on the home network.
import { mutated, SPECIAL, soup } from '../mutations.ts';
import { FORM, JSON_TYPE, type Plan, type Planner } from '../plan.ts';
import type { HubFacts } from './facts.ts';
import { registrationPlan } from './registration-plan.ts';
import { HubValues, type Proof } from './values.ts';

/** What requests to a hub are, by weights that let flows come to their end. */
export function hubPlanner(facts: HubFacts): Planner {
  return (dice, good) => dice.of(PLANS, token)(new HubValues(dice, facts, good));
}

const PLANS: readonly ((values: HubValues) => Plan)[] = [
  token,
  token,
  token,
  token,
  device,
  revoke,
  revoke,
  registrationPlan,
  pair,
  pair,
  callback,
  pages,
];

const DEVICE_CODE = 'urn:ietf:params:oauth:grant-type:device_code';
const SCOPES = ['Monitoring', 'RemoteControl', 'Monitoring Monitoring', '"', ' ', 'a\u0000b', 'x'.repeat(2000)];
const TTLS = ['0', '1', '60', '3600', '999999999', '-1', '1.5', '1e9', 'x', '99999999999999999999'];

function token(values: HubValues): Plan {
  const { dice, facts, good } = values;
  const { session } = facts;
  const ofSession = dice.chance(0.4);
  const clients = ofSession ? [session.client] : [facts.own, facts.own, facts.doubter, ...values.registered()];
  const proof = values.proof(clients);
  const own = { grant_type: 'client_credentials' };
  const [refreshTokens, deviceCodes] = ofSession
    ? [[session.refreshToken], [session.deviceCode]]
    : [facts.refreshTokens, facts.deviceCodes];
  const grant = dice.of<Record<string, string>>(
    [
      own,
      own,
      { ...own, min_ttl: good ? '60' : dice.of(TTLS, '') },
      { grant_type: 'refresh_token', refresh_token: values.one(refreshTokens) },
      { grant_type: DEVICE_CODE, device_code: values.one(deviceCodes) },
    ],
    own,
  );
  const scope: Record<string, string> = dice.chance(0.2) ? { scope: good ? 'Monitoring' : dice.of(SCOPES, '') } : {};
  const odd = good || dice.chance(0.95) ? {} : { grant_type: dice.of(['password', 'authorization_code', ''], '') };
  return toForm('/oauth/token', values, proof, { ...grant, ...scope, ...odd, ...proof.members });
}

function device(values: HubValues): Plan {
  const { dice, facts, good } = values;
  // Not by one whose token is to stay what it is: somebody may log in.
  const proof = values.proof([facts.doubter, facts.session.client, ...values.registered()]);
  const scope: Record<string, string> = dice.chance(0.3) ? { scope: good ? 'Monitoring' : dice.of(SCOPES, '') } : {};
  return toForm('/oauth/device_authorization', values, proof, { ...scope, ...proof.members });
}

/** By the one that is to lose its tokens, whatever it names. */
function revoke(values: HubValues): Plan {
  const { dice, facts } = values;
  const proof = values.proof([facts.doubter]);
  const what = values.one(dice.chance(0.7) ? facts.accessTokens : facts.refreshTokens);
  const hint = dice.chance(0.5) ? { token_type_hint: values.entry('access_token') } : {};
  return toForm('/oauth/revoke', values, proof, { token: what, ...hint, ...proof.members });
}

function toForm(path: string, values: HubValues, { heads, forged }: Proof, members: Record<string, string>): Plan {
  const { dice, good } = values;
  // On the port without TLS there is no OAuth at all.
  const origin = !good && dice.chance(0.03) ? 'http' : 'https';
  const type = good || dice.chance(0.95) ? FORM : dice.of([JSON_TYPE, 'Content-Type: text/plain', ''], '');
  return { origin, method: 'POST', path, heads: [type, ...heads], body: values.form(members), forged };
}

function pair(values: HubValues): Plan {
  const { dice, facts, good } = values;
  const code = values.one(facts.userCodes);
  const typed = dice.chance(0.3) ? code.toLowerCase().replaceAll('-', dice.of(['', ' ', '--'], '')) : code;
  if (dice.chance(0.5)) {
    const query = dice.chance(0.8) ? `?user_code=${encodeURIComponent(typed)}` : '';
    return { origin: 'https', method: 'GET', path: `/pair${query}`, heads: [] };
  }
  const foreign = !good && dice.chance(0.2) ? [dice.of(FOREIGN_PAGES, '')] : [];
  const body = values.form({ user_code: typed });
  return { origin: 'https', method: 'POST', path: '/pair', heads: [FORM, ...foreign], body };
}

const FOREIGN_PAGES = ['Origin: https://evil.example', 'Origin: null', 'Sec-Fetch-Site: cross-site'];

/** Codes that no portal gave: what the hub does with them costs it an exchange, so there are few to a good nonce. */
function callback(values: HubValues): Plan {
  const { dice, facts, good } = values;
  const known = dice.of(facts.nonces, 'x');
  const nonce =
    !good && dice.chance(0.02) ? known : encodeURIComponent(dice.of([mutated(dice, known), soup(dice, 60)], 'x'));
  const query = dice.of(
    [
      '',
      '?',
      `?code=${soup(dice, 60)}`,
      '?error=access_denied',
      '?code=a&code=b',
      `?code=${'x'.repeat(5000)}`,
      '?error=',
    ],
    '',
  );
  return { origin: 'http', method: 'GET', path: `/callback/${good ? 'x' : nonce}${good ? '' : query}`, heads: [] };
}

const PAGES = [
  '/',
  '/ca.pem',
  '/ca-old.pem',
  '/.well-known/oauth-authorization-server',
  '/openapi.json',
  '/favicon.ico',
  '/oauth/token',
  '/oauth/',
  '/.well-known/',
  '/v1/status',
  '/metrics',
];

function pages({ dice, good }: HubValues): Plan {
  const path = !good && dice.chance(0.1) ? `/${soup(dice, 99)}` : dice.of(PAGES, '/');
  const strange = !good && dice.chance(0.2) ? mutated(dice, path) + dice.of(SPECIAL, '') : path;
  return { origin: dice.chance(0.6) ? 'https' : 'http', method: 'GET', path: strange, heads: [] };
}
