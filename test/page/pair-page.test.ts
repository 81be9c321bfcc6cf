import { request } from 'undici';
import { beforeEach, describe, expect, it } from 'vitest';
import type { LoginLinkResult } from '../../src/core/lan-service.ts';
import { FORM_MEDIA_TYPE } from '../../src/system/http/form.ts';
import { samplePairing } from '../core/samples.ts';
import { LanServerHarness } from '../support/lan-server-harness.ts';
import { setUpOnce } from '../support/set-up.ts';

const USER_CODE = 'WDJB-MJHT';

let side: LanServerHarness;
/** The result of opening the link. */
let opening: () => Promise<LoginLinkResult>;

setUpOnce(async (parts) => {
  side = parts.use(await LanServerHarness.start());
  const pairing = samplePairing(
    { kind: 'asking' },
    {
      device: { appliance: 'an-appliance', codeHash: 'a-hash', userCode: USER_CODE },
    },
  );
  Object.assign(side.home.service, {
    findPairingByUserCode: async () => ({
      pairing,
      connection: 'wallbox',
      title: 'Wallbox',
      users: [{ name: 'wallbox', title: 'Wallbox' }],
      own: true,
      appliance: { name: 'wallbox', title: 'Wallbox' },
      isApprovable: false,
      needsInstaller: false,
    }),
    requestLoginLink: () => opening(),
  });
});

beforeEach(() => side.home.events.splice(0));

async function continueToLink() {
  const { statusCode, headers, body } = await request(`https://127.0.0.1:${side.server.httpsPort}/pair`, {
    method: 'POST',
    headers: { 'content-type': FORM_MEDIA_TYPE },
    body: `user_code=${USER_CODE}`,
    dispatcher: side.agent,
  });
  return { statusCode, headers, text: await body.text() };
}

describe('unexpected errors on the page for user codes', () => {
  const thrown = (error: unknown) => async () => Promise.reject(error);

  it.for<[string, () => Promise<LoginLinkResult>]>([
    ['a header that can not be sent', async () => ({ kind: 'link', authorizeUrl: 'https://portal.example/\r\nx: y' })],
    ['an error with a status of success', thrown(Object.assign(new Error('unheard of'), { statusCode: 200 }))],
    ['nothing', thrown(undefined)],
  ])('the page for user codes answers a plain 500 of the hub after %s', async ([, broken]) => {
    opening = broken;
    const { statusCode, headers, text } = await continueToLink();
    expect({ statusCode, type: headers['content-type'], location: headers['location'], text }).toEqual({
      statusCode: 500,
      type: 'text/plain; charset=utf-8',
      location: undefined,
      text: "Internal error; see the hub's log.\n",
    });
    expect(side.home.events).toMatchObject([{ level: 'error', event: 'request_failed' }]);
  });
});
