// What appliances, people and their browsers do for a login, from the device flow to the redirect.
import { expect } from 'vitest';
import type { PairingRun } from '../../src/broker/pairings/pairing-run.ts';
import type { CallbackBrowser, DeviceAuthorization } from '../../src/core/lan-service.ts';
import type { Pairing } from '../../src/core/pairings/pairing.ts';
import { Secret } from '../../src/core/secret.ts';
import { SECOND } from '../core/samples.ts';
import { rememberSecrets } from '../support/logs.ts';
import { type BrokerHarness, type BrokerHarnessOptions, pairingResult, UNKNOWN_BROWSER } from './broker-harness.ts';

/** The hub receives redirects at this address. */
export const REDIRECT: BrokerHarnessOptions = { redirect: (nonce) => `http://192.168.1.7:8480/callback/${nonce}` };

/** `paired`, the failure reason, or the current step. */
export const stateOf = (run: PairingRun): string => pairingResult(run.pairing.step);

/** An appliance begins a device flow. */
export async function beginFlow(
  { run: { deviceFlows, appliances, connections } }: BrokerHarness,
  name = 'wallbox',
): Promise<DeviceAuthorization> {
  const appliance = appliances.get(name);
  const outcome = await deviceFlows.begin(appliance, connections.ofAppliance(appliance), null);
  if (outcome.kind !== 'begun') throw new Error(`not begun: ${outcome.kind}`);
  rememberSecrets([outcome.authorization.deviceCode.reveal()]);
  return outcome.authorization;
}

/** An appliance polls its device flow. @returns `pending`, `paired`, or why there are no tokens */
export function pollFlow({ run }: BrokerHarness, id: string, { deviceCode }: DeviceAuthorization): string {
  const result = run.deviceFlows.poll(id, deviceCode.reveal());
  return result.kind === 'failed' ? result.reason : result.kind;
}

/** A person opens the hub's page and continues. @returns the `state` of the portal's link */
export async function openFlow({ run }: BrokerHarness, { userCode }: DeviceAuthorization): Promise<string> {
  const result = await run.deviceFlows.openLink(userCode);
  if (result.kind !== 'link') throw new Error(`not opened: ${result.kind}`);
  return stateIn(result.authorizeUrl);
}

/** The `state` of a portal's link. */
export function stateIn(authorizeUrl: string): string {
  return new URL(authorizeUrl).searchParams.get('state') ?? '';
}

/** A person logs in, or refuses to. @returns where the portal sends the browser */
export async function logInAt({ emulator }: BrokerHarness, state: string, deny = false): Promise<string> {
  return (await emulator.login({ state, user: 'demo', deny })).location;
}

/** A person logs in through the link with this `state`, and polling pairs the device flow. */
export async function expectPairedBy(
  harness: BrokerHarness,
  id: string,
  flow: DeviceAuthorization,
  state: string,
): Promise<void> {
  await logInAt(harness, state);
  await harness.time.pass(10 * SECOND);
  expect(pollFlow(harness, id, flow)).toBe('paired');
}

/** A person logs in through the newest link of a pairing, and polling pairs it. */
export async function expectPairedByPolling(harness: BrokerHarness, run: PairingRun): Promise<void> {
  await harness.login(run);
  await harness.time.pass(10 * SECOND);
  expect(stateOf(run)).toBe('paired');
}

/** Sends the parameters of the portal's redirect to the hub. */
export async function followRedirect(
  { run: { pairings } }: BrokerHarness,
  location: string,
  from: CallbackBrowser = UNKNOWN_BROWSER,
): Promise<Pairing | null> {
  const { pathname, searchParams } = new URL(location);
  const nonce = pathname.split('/').at(-1) ?? '';
  const [code, error] = [searchParams.get('code'), searchParams.get('error')];
  const withoutCode = error === null ? ({ kind: 'nothing' } as const) : ({ kind: 'error', error } as const);
  const response = code === null ? withoutCode : ({ kind: 'code', code: new Secret(code) } as const);
  return (await pairings.receive({ nonce, response }, from))?.pairing ?? null;
}
