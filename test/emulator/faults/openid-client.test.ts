import * as oauth from 'openid-client';
import { Agent, fetch as fetchWith } from 'undici';
import { expect, test } from 'vitest';
import type { Emulator, EmulatorOptions, FaultOptions } from '../../../src/emulator/index.ts';
import { ALICE, HEATER, startTestEmulator, stateOf } from '../portal-client.ts';

const REFRESH = { endpoint: 'token', grantType: 'refresh_token' } as const;

/** openid-client with a timeout of five seconds. It trusts the emulator's CA, if there is one. */
function clientOf(emulator: Emulator) {
  const metadata = { issuer: emulator.frontendUrl, token_endpoint: `${emulator.frontendUrl}/sso/token` };
  const client = new oauth.Configuration(metadata, HEATER.id, HEATER.secret);
  const agent = new Agent({ connect: { ca: emulator.ca ?? undefined }, pipelining: 0 });
  if (emulator.ca === null) oauth.allowInsecureRequests(client);
  client.timeout = 5;
  client[oauth.customFetch] = async (url, options) => {
    const response = await fetchWith(url, { ...options, body: String(options.body), dispatcher: agent });
    return new Response(await response.text(), { status: response.status, headers: [...response.headers] });
  };
  return {
    async pair() {
      const helper = `${emulator.baseUrl}/external/oauth2helper/config/${HEATER.id}`;
      const response = await fetchWith(helper, { method: 'POST', dispatcher: agent });
      const { code_url } = (await response.json()) as { readonly code_url: string };
      const landed = new URL((await emulator.login({ state: stateOf(code_url), user: ALICE.name })).location);
      const polled = await fetchWith(code_url, { dispatcher: agent });
      landed.search = `code=${((await polled.json()) as { readonly code: string }).code}`;
      const tokens = await oauth.authorizationCodeGrant(client, landed, {}, { scope: 'Monitoring' });
      return tokens.refresh_token ?? '';
    },
    refresh: async (token: string) => (await oauth.refreshTokenGrant(client, token)).refresh_token ?? '',
    [Symbol.asyncDispose]: () => agent.destroy(),
  };
}

/** The codes and names of an error and its causes. */
function why(error: unknown): string {
  if (!(error instanceof Error)) return '';
  return `${(error as NodeJS.ErrnoException).code ?? error.name} ${why(error.cause)}`;
}

test.for<[tls: boolean, faults: readonly (readonly [FaultOptions, RegExp])[]]>([
  [
    false,
    [
      [{ ...REFRESH, kind: 'hang' }, /TIMEOUT/],
      [{ kind: 'origin_down', origin: 'frontend' }, /ECONNREFUSED/],
    ],
  ],
  [
    true,
    [
      [{ kind: 'tls_failure', origin: 'frontend' }, /ERR_SSL_WRONG_VERSION_NUMBER/],
      [{ kind: 'tls_failure', origin: 'frontend', answer: 'close' }, /ECONNRESET|UND_ERR_SOCKET/],
      [{ kind: 'origin_down', origin: 'frontend' }, /ECONNREFUSED/],
      [{ ...REFRESH, kind: 'reset_before' }, /ECONNRESET/],
    ],
  ],
])('a fault before the request takes effect costs openid-client no token (TLS: %s)', async ([tls, faults]) => {
  await using emulator = await startTestEmulator({ tls });
  await using client = clientOf(emulator);
  let held = await client.pair();
  for (const [fault, reason] of faults) {
    const { id } = emulator.addFault(fault);
    expect(await client.refresh(held).catch(why), fault.kind).toMatch(reason);
    await emulator.removeFault(id);
    held = await client.refresh(held);
  }
  expect(emulator.observations.refreshTokensRepeated).toBe(0);
});

test.for<[EmulatorOptions, replay: 'refused' | 'the lost one' | 'a new one', alive: boolean]>([
  [{}, 'refused', true],
  [{ onReuse: 'revoke-family' }, 'refused', false],
  [{ refreshGrace: 1 }, 'a new one', true],
  [{ refreshGrace: 1, onReuse: 'revoke-family' }, 'a new one', true],
  [{ refreshGraceTime: 30 }, 'the lost one', true],
  [{ refreshGraceTime: 30, onReuse: 'revoke-family' }, 'the lost one', true],
])(
  'after a lost answer the settings %j lead to this outcome of a replayed refresh token: %s',
  async ([options, wanted, alive]) => {
    await using emulator = await startTestEmulator(options);
    await using client = clientOf(emulator);
    const held = await client.pair();
    emulator.addFault({ ...REFRESH, kind: 'commit_then_drop' });
    expect(await client.refresh(held).catch(why)).toMatch(/ECONNRESET/);
    const lost = emulator.secretsIssued('refresh_token').at(-1) ?? '';
    const replayed = await client.refresh(held).catch((error: oauth.ResponseBodyError) => error.error);
    expect(replayed === 'invalid_grant' ? 'refused' : replayed === lost ? 'the lost one' : 'a new one').toBe(wanted);
    const next = wanted === 'refused' ? lost : replayed;
    expect(
      await client.refresh(next).then(
        () => true,
        () => false,
      ),
    ).toBe(alive);
  },
);
