import { expect, test } from 'vitest';
import { selectRows } from '../support/long.ts';
import { httpResponse } from '../support/raw-server.ts';
import { BrokerHarness } from './broker-harness.ts';

const TOKENS = '{"access_token":"another-access-token","refresh_token":"another-refresh-token","expires_in":3600}';
const bodies = {
  empty: '',
  'an HTML page': '<!doctype html><title>Sorry</title>',
  'broken JSON': '{"access_token": "abc", "refresh_to',
  invalid_grant: '{"error":"invalid_grant"}',
  invalid_client: '{"error":"invalid_client"}',
  'a token response': TOKENS,
} as const;

/** The limits of the status ranges in the outcome table of test/portal/every-response.test.ts. */
const ENDS = [100, 199, 200, 204, 299, 300, 399, 400, 401, 429, 499, 500, 502, 503, 599];
const statuses = selectRows(
  Array.from({ length: 500 }, (_, index) => 100 + index),
  ENDS,
);

test.each(Object.entries(bodies))(
  'a refresh response with %s and any status keeps the grant, and only new tokens replace the old ones',
  async (name, body) => {
    const { harness, id } = await BrokerHarness.startPaired({ retryLostAnswer: 'late' });
    const wrong: string[] = [];
    for (const status of statuses) {
      const before = (await harness.run.store.grants.get(id)) ?? expect.fail(`gone before ${status}`);
      harness.portal.fail('token', { kind: 'bytes', bytes: httpResponse(status, body) });
      await harness.run.grants.refresh(id);
      const after = (await harness.run.store.grants.get(id)) ?? expect.fail(`gone by ${status}`);

      const granted = status >= 200 && status < 300 && status !== 204 && body === TOKENS;
      const refused = status >= 400 && status < 500 && status !== 429 && name === 'invalid_grant';
      const lost = !granted && (status < 300 || (status >= 500 && status !== 503));
      const { doubt } = before.grant;
      const expected = {
        refreshToken: granted ? 'another-refresh-token' : before.grant.refreshToken?.reveal(),
        generation: before.grant.generation + (granted ? 1 : 0),
        sends: granted ? 0 : before.grant.refused === null && lost ? (doubt?.sends ?? 0) + 1 : (doubt?.sends ?? 0),
        refused: granted ? false : refused || before.grant.refused !== null,
        attempt: null,
      };
      const found = {
        refreshToken: after.grant.refreshToken?.reveal(),
        generation: after.grant.generation,
        sends: after.grant.doubt?.sends ?? 0,
        refused: after.grant.refused !== null,
        attempt: after.attempt,
      };
      if (JSON.stringify(found) !== JSON.stringify(expected)) wrong.push(`${status}: ${JSON.stringify(found)}`);
      // The hub issues the current access token until it expires, whatever the response was.
      const result = await harness.run.tokenIssuer.issue(id, null);
      if (result.kind !== 'token') wrong.push(`${status}: ${result.kind}`);
    }
    expect(wrong).toEqual([]);
    expect(harness.refreshes).toBe(statuses.length);
    expect(await harness.run.store.grants.all()).toHaveLength(1);
  },
);
