// Makes the requests of the fuzz: each follows from the seed, its number and the facts of the emulator alone.
import { createHmac } from 'node:crypto';

/** What requests are made from. Nothing of the victim's is here but its id and the payloads of its states. */
export interface Facts {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly victimId: string;
  readonly user: string;
  readonly password: string;
  /** Good ones of the attacker's own client, used and unused. */
  readonly states: readonly string[];
  readonly codes: readonly string[];
  readonly accessTokens: readonly string[];
  readonly refreshTokens: readonly string[];
  /** The middle part of a state whose code waits at the helper. */
  readonly victimPayload: string;
}

/** One request, as it goes over the wire. */
export interface FuzzRequest {
  readonly origin: 'base' | 'frontend';
  readonly method: string;
  readonly path: string;
  /** In Latin-1. */
  readonly bytes: string;
  /** Whether HTTP itself is kept, so that an answer must come and the connection goes on. */
  readonly sound: boolean;
  /** The bytes are written in this many pieces. */
  readonly pieces: number;
}

/** Random numbers that follow from a seed: mulberry32. */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to 1, without 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  }

  below(limit: number): number {
    return Math.floor(this.fraction() * limit);
  }

  chance(share: number): boolean {
    return this.fraction() < share;
  }

  /** One of them; of none, nothing. */
  of<T>(all: readonly T[], none: T): T {
    return all[this.below(all.length)] ?? none;
  }
}

/** The request with this number. */
export function requestOf(seed: number, number: number, facts: Facts): FuzzRequest {
  const dice = new Dice(Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(number + 1, 0x85ebca6b));
  const sound = !dice.chance(0.04);
  const plan = dice.of(PLANS, PLANS[0] ?? whoami)(dice, facts);
  const method = dice.chance(0.08) ? dice.of(METHODS, 'GET') : plan.method;
  let path = plan.path;
  for (let i = dice.chance(0.4) ? 1 + dice.below(3) : 0; i > 0; i -= 1) path = mutated(dice, path);
  if (sound) path = `/${path.replaceAll(/[^\x21-\x7e]/g, '%ff').replace(/^\/+/, '')}`.slice(0, 6000);
  let body = plan.body ?? (dice.chance(0.05) ? soup(dice, 200) : '');
  if (!sound && dice.chance(0.05)) body = body.padEnd(60_000 + dice.below(20_000), 'x');
  const heads = plan.heads.map((head) => (dice.chance(0.1) ? mutated(dice, head) : head));
  if (dice.chance(0.2)) heads.push(dice.of(HEADS, ''));
  if (dice.chance(0.02)) heads.push(`X-${dice.below(99)}: ${soup(dice, 3000)}`);
  const clean = sound ? heads.map(soundHead) : heads;
  const length = sound || dice.chance(0.7) ? [`Content-Length: ${body.length}`] : [dice.of(LENGTHS, '')];
  const needed = body === '' && !dice.chance(0.3) ? [] : length;
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...clean, ...needed];
  let bytes = `${lines.filter((line) => line !== '').join('\r\n')}\r\n\r\n${body}`;
  if (!sound) for (let i = dice.below(4); i > 0; i -= 1) bytes = mutated(dice, bytes);
  return { origin: plan.origin, method, path, bytes, sound, pieces: dice.chance(0.03) ? 2 + dice.below(4) : 1 };
}

interface Plan {
  readonly origin: 'base' | 'frontend';
  readonly method: string;
  readonly path: string;
  readonly heads: readonly string[];
  readonly body?: string;
}

const HELPER = '/external/oauth2helper';
const FORM = 'Content-Type: application/x-www-form-urlencoded';
const JSON_TYPE = 'Content-Type: application/json';
const METHODS = ['GET', 'POST', 'HEAD', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY'];
const LENGTHS = [
  '',
  'Content-Length: -1',
  'Content-Length: 99999999',
  'Content-Length: 1\r\nContent-Length: 2',
  'Content-Length: 0x5',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: chunked\r\nContent-Length: 3',
];
const HEADS = [
  'Authorization: Basic \xff',
  'Authorization: Basic Og==',
  'Authorization: Bearer ....',
  'Authorization: Digest x',
  'Content-Type: nonsense',
  'Content-Type: application/json; charset=x',
  'Content-Type: multipart/form-data; boundary=',
  'Accept: text/\xe9',
  'Origin: https://evil.example',
  'Sec-Fetch-Site: cross-site',
  'Cookie: a=b; __Host-x=\x7f',
  'If-None-Match: *',
  'Range: bytes=0-1',
  'X-Forwarded-Host: evil.example',
  'Content-Encoding: gzip',
  'Accept-Encoding: gzip;q=9',
];
const SPECIAL = [
  '%00',
  '%ff',
  '%',
  '..',
  '//',
  '\\',
  '"',
  "'",
  '<script>',
  '&',
  '=',
  '+',
  '\0',
  '\xff',
  '__proto__',
  'constructor',
  '%0d%0a',
  ';',
  '{{7*7}}',
  '-1',
  '1e999',
  '\u00e9',
  '?',
  '#',
  '[]',
  ':',
  '\r\n',
];

const whoami = (dice: Dice, facts: Facts): Plan => ({
  origin: 'base',
  method: 'GET',
  path: '/api/whoami',
  heads: [`Authorization: Bearer ${token(dice, facts.accessTokens, facts)}`],
});

/** Requests close to good ones, for every endpoint. */
const PLANS: readonly ((dice: Dice, facts: Facts) => Plan)[] = [
  whoami,
  (dice, facts) => {
    const url = dice.of(['http://127.0.0.1:1/cb', 'http://[', 'javascript:alert(1)', `http://x/${soup(dice, 50)}`], '');
    const query = dice.chance(0.5) ? `?redirect_url=${encodeURIComponent(url)}` : '';
    return {
      origin: 'base',
      method: 'POST',
      path: `${HELPER}/config/${client(dice, facts)}${query}`,
      heads: [JSON_TYPE],
    };
  },
  (dice, facts) => {
    const path = `${HELPER}/code/get/${client(dice, facts)}?state=${state(dice, facts)}`;
    return { origin: 'base', method: 'GET', path, heads: [] };
  },
  (dice, facts) => {
    const what = dice.of([`code=${code(dice, facts)}`, 'error=access_denied', ''], '');
    const path = `${HELPER}/code/set/${client(dice, facts)}?${what}&state=${state(dice, facts)}`;
    return { origin: 'base', method: 'GET', path, heads: [] };
  },
  (dice, facts) => {
    const more = dice.chance(0.2)
      ? `&redirect_uri=${encodeURIComponent(dice.of(SPECIAL, ''))}&scope=${soup(dice, 9)}`
      : '';
    const path = `/sso/authorize?response_type=code&client_id=${client(dice, facts)}&state=${state(dice, facts)}${more}`;
    const login = form(dice, { username: facts.user, password: facts.password, action: dice.of(['', 'refuse'], '') });
    return dice.chance(0.5)
      ? { origin: 'frontend', method: 'GET', path, heads: [] }
      : { origin: 'frontend', method: 'POST', path, heads: [FORM], body: login };
  },
  tokenPlan,
  tokenPlan,
  apiPlan,
  apiPlan,
  (dice) => ({
    origin: dice.of(['base', 'frontend'], 'base'),
    method: 'GET',
    path: dice.of(
      [
        '/',
        '/favicon.ico',
        '/_emulator',
        '/_emulator/',
        '/_emulator/console/x.js',
        '/_emulator/console.css',
        '/_emulator/openapi.json',
        `/${soup(dice, 99)}`,
      ],
      '/',
    ),
    heads: [],
  }),
];

function tokenPlan(dice: Dice, facts: Facts): Plan {
  const id = dice.chance(0.8) ? facts.clientId : client(dice, facts);
  const credentials = dice.chance(0.9) ? { client_id: id, client_secret: facts.clientSecret } : {};
  const grant = dice.chance(0.5)
    ? { grant_type: 'refresh_token', refresh_token: token(dice, facts.refreshTokens, facts) }
    : { grant_type: 'authorization_code', code: code(dice, facts), scope: dice.of(['', 'a b', 'a  b', '"'], '') };
  const basic = Buffer.from(`${id}:${facts.clientSecret}`).toString('base64');
  const heads = 'client_id' in credentials ? [FORM] : [FORM, `Authorization: Basic ${basic}`];
  return {
    origin: 'frontend',
    method: 'POST',
    path: '/sso/token',
    heads,
    body: form(dice, { ...credentials, ...grant }),
  };
}

/** The emulator's own API. Faults never fit: what they break would be broken as asked. */
function apiPlan(dice: Dice, facts: Facts): Plan {
  const own: readonly (readonly [method: string, path: string, body: unknown])[] = [
    ['POST', 'login', { state: state(dice, facts), user: facts.user, deny: dice.chance(0.3) }],
    ['GET', `requests?since=${dice.of(['0', '-1', '1e9', 'x', '99999999999999999999'], '')}`, null],
    ['GET', 'settings', null],
    ['PATCH', 'settings', { code_lifetime: value(dice), token_lifetime: value(dice), on_reuse: value(dice) }],
    [
      'PATCH',
      'settings',
      { [dice.of(['basic', 'auto_login', 'refresh_grace', 'error_body', 'rate_limit'], 'x')]: value(dice) },
    ],
    ['GET', 'faults', null],
    ['POST', 'faults', { endpoint: 'token', kind: value(dice), status: value(dice), never: value(dice) }],
    ['DELETE', `faults/${dice.of(SPECIAL, 'x')}`, null],
    ['DELETE', 'faults', null],
    ['GET', 'clock', null],
    ['POST', 'clock', { advance: dice.of<unknown>([-1, 0, 0.001, '5', null, 1e308, -0, [], {}], 0) }],
    ['GET', 'logins', null],
    ['GET', 'grants', null],
    ['POST', `grants/${dice.of(SPECIAL, 'x')}/revoke`, { what: value(dice) }],
    ['GET', 'findings', null],
  ];
  const [method, path, body] = dice.of(own, ['GET', 'clock', null]);
  if (body === null) return { origin: 'base', method, path: `/_emulator/${path}`, heads: [] };
  let text = JSON.stringify(body);
  // A fault that lost its unknown member might fit, so those are only cut short.
  if (path === 'faults') text = dice.chance(0.3) ? text.slice(0, dice.below(text.length)) : text;
  else if (dice.chance(0.4)) text = mutated(dice, text);
  else if (dice.chance(0.05)) text = '['.repeat(dice.below(5000));
  return { origin: 'base', method, path: `/_emulator/${path}`, heads: [JSON_TYPE], body: latin1(text) };
}

function value(dice: Dice): unknown {
  const all = [
    null,
    true,
    -1,
    0,
    1,
    1.5,
    1e21,
    '',
    'refuse',
    'revoke-family',
    'status',
    'x'.repeat(999),
    [],
    {},
    [[]],
    { a: 1 },
    '\u0000',
    2 ** 53,
  ];
  return dice.of<unknown>(all, null);
}

function client(dice: Dice, facts: Facts): string {
  if (dice.chance(0.6)) return facts.clientId;
  return dice.of(
    [facts.victimId, facts.clientId.toUpperCase(), '__proto__', '', '..', 'x'.repeat(dice.below(2000)), '%2e%2e'],
    '',
  );
}

function code(dice: Dice, facts: Facts): string {
  const known = dice.of(facts.codes, '');
  return dice.chance(0.5) ? known : dice.of([mutated(dice, known), soup(dice, 60), '', state(dice, facts)], '');
}

function token(dice: Dice, known: readonly string[], facts: Facts): string {
  const one = dice.of(known, '');
  if (dice.chance(0.5)) return one;
  const parts = one.split('.');
  const older = parts.with(1, String(dice.below(9))).join('.');
  return dice.of(
    [older, mutated(dice, one), [...parts].reverse().join('.'), state(dice, facts), soup(dice, 80), ''],
    '',
  );
}

/** A state: good, or forged in one of the ways that JWT libraries have fallen for. */
function state(dice: Dice, facts: Facts): string {
  const good = dice.of(facts.states, '');
  if (dice.chance(0.3)) return good;
  const [head = '', payload = '', mac = ''] = good.split('.');
  const wanted = dice.chance(0.5) ? facts.victimPayload : payload;
  const none = base64url(
    dice.of(['{"alg":"none"}', '{"alg":"None","typ":"JWT"}', '{"alg":"nOnE"}', '{}', 'null'], '{}'),
  );
  const other = base64url(
    dice.of(
      [
        '{"alg":"RS256"}',
        '{"alg":"HS512"}',
        '{"alg":"HS256","crit":["x"]}',
        '{"alg":"HS256","jwk":{"kty":"oct","k":"AA"}}',
        '{"alg":"HS256","kid":"../../dev/null"}',
        '{"alg":["HS256"]}',
      ],
      '{}',
    ),
  );
  const foreign = createHmac('sha256', dice.of(['', 'secret', facts.clientSecret], ''))
    .update(`${head}.${wanted}`)
    .digest('base64url');
  const claims = base64url(
    dice.of(['{"jti":null}', '[]', '1', '{"jti":"__proto__","aud":["a"],"exp":1e400}', '{"exp":"x"}', ''], ''),
  );
  return dice.of(
    [
      `${none}.${wanted}.`,
      `${none}.${wanted}.${mac}`,
      `${head}.${wanted}.${mac}`,
      `${head}.${wanted}.${foreign}`,
      `${other}.${wanted}.${mac}`,
      `${head}.${claims}.${mac}`,
      mutated(dice, good),
      good.slice(0, dice.below(good.length)),
      `${good}.${mac}`,
      '..',
      soup(dice, 200),
    ],
    '',
  );
}

function form(dice: Dice, members: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(members).map(([name, text]) => `${name}=${encodeURIComponent(latin1(text))}`);
  if (dice.chance(0.1)) pairs.push(dice.of(pairs, ''));
  if (dice.chance(0.1)) pairs.splice(dice.below(pairs.length), 1);
  if (dice.chance(0.02)) pairs.push(...Array.from({ length: 900 }, (_, index) => `a${index}=1`));
  const text = pairs.join(dice.chance(0.02) ? ';' : '&');
  return dice.chance(0.25) ? mutated(dice, text) : text;
}

/** A text with one thing wrong: a piece gone, doubled, strange or upside down. */
function mutated(dice: Dice, text: string): string {
  const at = dice.below(text.length + 1);
  const to = at + dice.below(8);
  const kinds = [
    () => text.slice(0, at) + text.slice(to),
    () => text.slice(0, to) + text.slice(at),
    () => text.slice(0, at) + dice.of(SPECIAL, '') + text.slice(at),
    () => text.slice(0, at) + String.fromCharCode(dice.below(256)) + text.slice(at + 1),
    () => text.slice(0, at),
    () => text.slice(0, at) + 'A'.repeat(dice.below(300)) + text.slice(at),
  ];
  return latin1(dice.of(kinds, () => text)());
}

function soup(dice: Dice, longest: number): string {
  return Array.from({ length: dice.below(longest) }, () => String.fromCharCode(33 + dice.below(94))).join('');
}

/** A header line that HTTP takes: a name, a colon, and no control characters. */
function soundHead(head: string): string {
  const text = head.replaceAll(/[^\x20-\x7e\x80-\xff]/g, '');
  return /^[A-Za-z-]+: /.test(text) && !/^(content-length|transfer-encoding|connection|upgrade|expect|host)/i.test(text)
    ? text
    : '';
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}

function latin1(text: string): string {
  return text.replaceAll(/[\u0100-\uffff]/g, '\xbf');
}
