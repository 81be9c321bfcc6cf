import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { loadConfiguration } from '../../src/configuration/configuration.ts';
import { Failure, messageOf } from '../../src/core/failure.ts';
import { parseHttpDate, parseRetryAfter } from '../../src/portal/content-encoding.ts';
import { parseAuthorizationCode, parseLoginEndpoints } from '../../src/portal/helper/wire.ts';
import { parseErrorCode, parseErrorDescription } from '../../src/portal/token-response.ts';
import { parseBackup } from '../../src/store/backup/backup-file.ts';
import { jweSealing, STORE_KEY_BYTES } from '../../src/store/keys/sealing.ts';
import { readGrant } from '../../src/store/rows/grant-row.ts';
import { readPairing } from '../../src/store/rows/pairing-row.ts';
import { parseForm } from '../../src/system/http/form.ts';
import { parseTokenResponse } from '../portal/token-bodies.ts';
import { findLeakedSecret, type ParserCase } from './parser-case.ts';
import { mutatedJson, mutatedTexts } from './parsers-mutations.ts';

/** Long enough not to occur by chance. Parts of it must not be revealed either. */
const PLANTED = 'Zq3vT5kLw8rB2nD7cF-planted';
const PARTS = [PLANTED.slice(0, 10), PLANTED.slice(-10)];

const INSTANT = { boot: 'b', uptime: 1, wall: 1 };
const scopes = ['Monitoring', null, '', 'A'.repeat(5000)];

/** Responses of the portal's three endpoints, and headers with a time. */
const responses: ParserCase<string> = {
  name: 'portal responses',
  inputs: fc.oneof(
    mutatedJson({
      authorize_url: ['https://p.example/sso?state=s'],
      code_url: ['https://p.example/code'],
      accesstoken_request_url: ['https:\\/\\/p.example\\/t'],
    }),
    mutatedJson({
      code: [PLANTED, '', 'c'.repeat(5000)],
      error: ['invalid_grant', PLANTED],
      error_description: [`the token ${PLANTED} is unknown`],
    }),
    mutatedJson({
      access_token: [PLANTED],
      refresh_token: [PLANTED, null],
      expires_in: [3600, '3600', 0, -1, 1e300],
      scope: scopes,
      token_type: ['bearer'],
    }),
    mutatedTexts('Tue, 15 Nov 1994 08:12:31 GMT', '120', 'Sunday, 06-Nov-94 08:49:37 GMT', 'Sun Nov  6 08:49:37 1994'),
  ),
  try(body) {
    for (const parse of [parseLoginEndpoints, parseAuthorizationCode]) parse(body);
    const tokens = parseTokenResponse(body);
    const delay = parseRetryAfter(body, parseHttpDate(body));
    if (tokens !== null && !(tokens.lifetime > 0 && tokens.lifetime <= 366 * 86_400_000))
      return `the lifetime is ${tokens.lifetime} ms`;
    if (delay !== null && !(delay >= 0)) return `the delay is ${delay} ms`;
    const error = `${parseErrorCode({ status: 400, body })} ${parseErrorDescription(body)}`;
    return findLeakedSecret(JSON.stringify(tokens), PARTS) ?? findLeakedSecret(error, PARTS);
  },
};

const form: ParserCase<string> = {
  name: 'forms',
  inputs: mutatedTexts(
    'grant_type=client_credentials&scope=A+B',
    `client_id=a&client_secret=${PLANTED}&client_id=b`,
    '%E9=%C3%A9&a=',
  ),
  try(body) {
    try {
      parseForm(body);
      return null;
    } catch (error) {
      return `it threw ${messageOf(error)}`;
    }
  },
};

const folder = mkdtempSync(join(tmpdir(), 'latchkey-parsers-'));
writeFileSync(join(folder, 'portal.secret'), PLANTED, { mode: 0o600 });
const CONFIGURATION = `[hub]\nname = "Cellar hub"\n[lan]\nhttp_port = 8480\naddress = "auto"\nlisten = ["0.0.0.0", "::"]\nmdns = true
[portals.home]\nbase_url = "https://api.portal.example"\nfrontend_url = "https://portal.example"
client_id = "0f4b3c52-6a1e-4d9b-9d57-2c8f1e6a7b90"\nclient_secret_file = "portal.secret"\nretry_lost_answer = "early"\n[pairing]\nlifetime = "15m"\npoll_interval = "5s"\n`;

async function load(toml: string): Promise<string | null> {
  const file = join(folder, 'latchkey.toml');
  writeFileSync(file, toml);
  try {
    await loadConfiguration(file, {});
    return null;
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'config_invalid') return `it threw ${messageOf(error)}`;
    if (/[\n\r]/.test(error.message)) return `the message has several lines: ${JSON.stringify(error.message)}`;
    return error.message.length > 3000
      ? `the message has ${error.message.length} characters`
      : findLeakedSecret(error.message, PARTS);
  }
}

/** A misplaced secret is most likely in a portal's table, or under an unknown key. */
const MISPLACED = ['client_id', 'client_secret_file', 'client_secret', 'secret'];

const configuration: ParserCase<string> = { name: 'configurations', inputs: mutatedTexts(CONFIGURATION), try: load };

const misplaced: ParserCase<{ key: string; value: string }> = {
  name: 'configurations with a misplaced secret',
  inputs: fc.record({
    key: fc.constantFrom(...MISPLACED),
    value: fc.constantFrom(
      ...[`"${PLANTED}"`, `["${PLANTED}"]`, `{ secret = "${PLANTED}" }`, `"https://user:${PLANTED}@portal.example"`],
      ...[`"""\n${PLANTED}\n"""`, `'${PLANTED}`, PLANTED],
    ),
  }),
  try({ key, value }) {
    const line = new RegExp(`^${key} = .*$`, 'm');
    const known = line.test(CONFIGURATION);
    return load(CONFIGURATION.replace(known ? line : /^retry_lost_answer = .*$/m, () => `${key} = ${value}`));
  },
};

const sealing = jweSealing(new Uint8Array(STORE_KEY_BYTES).fill(7));

/** Rows as after disk damage, or from somebody who can write the database but does not have the store key. */
const rows: ParserCase<{ secrets: string; more: string; sealed: string | null }> = {
  name: 'store rows',
  inputs: fc.record({
    secrets: fc.oneof(
      { weight: 1, arbitrary: mutatedTexts(PLANTED) },
      {
        weight: 4,
        arbitrary: mutatedJson({
          accessToken: [PLANTED, [PLANTED]],
          refreshToken: [PLANTED],
          scope: scopes,
          lifetime: [3600],
          obtained: [INSTANT],
          portalTime: [null],
          requestedScope: [null],
          issuer: [{ origin: 'https://portal.example', clientId: 'c', name: 'home' }, PLANTED],
          nonce: [PLANTED, { a: PLANTED }],
          device: [null],
          portal: ['home'],
          begun: [INSTANT],
          spentCodes: [[], ['a']],
          lastFailure: [null],
          step: [
            {
              kind: 'waiting',
              link: { kind: 'poll', authorizeUrl: PLANTED, codeUrl: 'b', tokenUrl: 'c', redirect: null },
            },
            ...[{ kind: 'asking' }, { kind: 'ended', result: { kind: 'paired', scope: null } }, PLANTED],
          ],
        }),
      },
    ),
    more: mutatedJson({ lostAt: [INSTANT], sends: [1] }),
    sealed: fc.oneof(
      { weight: 5, arbitrary: fc.constant(null) },
      mutatedTexts('eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..aaaa.bbbb.cccc'),
    ),
  }),
  async try({ secrets, more, sealed }) {
    const grant = sealed ?? sealing.seal('grants/a/1', secrets);
    const pairing = sealed ?? sealing.seal('pairings/p/a', secrets);
    const reading = [
      () =>
        readGrant(
          {
            connection: 'a',
            generation: 1,
            sealed: grant,
            attempt: null,
            doubt: more,
            refused: null,
            distrusted: more,
            misconfigured: more,
          },
          sealing,
        ),
      () => readPairing({ id: 'p', connection: 'a', sealed: pairing }, sealing),
    ];
    for (const read of reading) {
      const wrong = await Promise.resolve()
        .then((): unknown => read())
        .then(
          () => null,
          (error: unknown) =>
            error instanceof Failure ? findLeakedSecret(messageOf(error), PARTS) : `it threw ${messageOf(error)}`,
        );
      if (wrong !== null) return wrong;
    }
    return null;
  },
};

const backups: ParserCase<string> = {
  name: 'backups',
  inputs: mutatedJson({
    format: [1, 2, '1'],
    made: [1, 1e300],
    settings: [{ a: PLANTED }],
    appliances: [
      [{ id: '11111111-1111-4111-8111-111111111111', name: 'a', credentials: { kind: 'secret', hash: PLANTED } }],
    ],
    grants: [[], [{ accessToken: PLANTED }]],
  }),
  try(text) {
    try {
      parseBackup(text);
      return null;
    } catch (error) {
      return error instanceof Failure ? findLeakedSecret(messageOf(error), PARTS) : `it threw ${messageOf(error)}`;
    }
  },
};

/** Parsers of texts and files, which can be called without a network. */
export const directParserCases: readonly ParserCase<never>[] = [
  responses,
  form,
  configuration,
  misplaced,
  rows,
  backups,
] as unknown as ParserCase<never>[];
