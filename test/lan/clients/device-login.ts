import { Agent, request } from 'undici';
import { expect } from 'vitest';
import type { Emulator } from '../../../src/emulator/index.ts';

/** What the appliance shows a person of a device flow (RFC 8628, 3.3). */
export interface DeviceFlowPrompt {
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
}

/** Enters the user code at the hub and logs in at the portal, without a browser. */
export async function logIn(
  { verification_uri, user_code }: DeviceFlowPrompt,
  emulator: Emulator,
  ca: string,
): Promise<void> {
  const agent = new Agent({ connect: { ca } });
  const response = await request(verification_uri, {
    method: 'POST',
    dispatcher: agent,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: new URLSearchParams({ user_code }).toString(),
  });
  expect(response.statusCode, await response.body.text()).toBe(303);
  const state = new URL(String(response.headers['location'])).searchParams.get('state') ?? '';
  const { location } = await emulator.login({ state, user: 'demo' });
  expect(await (await request(location)).body.text()).toContain('is connected');
  await agent.destroy();
}
